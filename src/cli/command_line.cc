#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <string_view>
#include <vector>

namespace tw::cli {

namespace {

// CLI11 reads an empty word as 0 and lets a whole number wrap; both are refused before it converts.
std::string check_whole_number(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return {};
  return fmt::format("\"{}\" was given, a whole number from 0 on was expected", text);
}
std::string check_given(const std::string& text) { return text.empty() ? "an empty text was given" : std::string{}; }
std::string check_number(const std::string& text) {
  return text.empty() ? "nothing was given, a number was expected" : std::string{};
}

// A name or a file cannot be empty (a shell's variable that is not set is); these texts can.
constexpr std::string_view kMayBeEmpty[] = {"PROMPT", "--prompt", "--stop"};

void check_values(CLI::App& verb) {
  for (CLI::Option* option : verb.get_options()) {
    const bool may_be_empty = std::ranges::count(kMayBeEmpty, option->get_name()) != 0;
    if (option->get_type_name() == "TEXT" && !may_be_empty) option->check(CLI::Validator(check_given, ""));
    if (option->get_type_name() == "UINT") option->check(CLI::Validator(check_whole_number, ""));
    if (option->get_type_name() == "FLOAT") option->check(CLI::Validator(check_number, ""));
  }
}

}  // namespace

const Option& Option::shows_default() const {
  option_->capture_default_str();
  return *this;
}
const Option& Option::required() const {
  option_->required();
  return *this;
}
const Option& Option::needs(const Option& other) const {
  option_->needs(other.option_);
  return *this;
}
const Option& Option::excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}
const Option& Option::takes(int words) const {
  option_->expected(words);
  return *this;
}
const Option& Option::takes_list() const {
  option_->delimiter(',')->allow_extra_args(false);
  return *this;
}

template <class T>
Option Verb::option(const std::string& names, T& into, const std::string& help) const {
  return Option(app_->add_option(names, into, help));
}
template Option Verb::option(const std::string&, std::string&, const std::string&) const;
template Option Verb::option(const std::string&, uint32_t&, const std::string&) const;
template Option Verb::option(const std::string&, uint64_t&, const std::string&) const;
template Option Verb::option(const std::string&, float&, const std::string&) const;
template Option Verb::option(const std::string&, std::optional<std::string>&, const std::string&) const;
template Option Verb::option(const std::string&, std::optional<uint32_t>&, const std::string&) const;
template Option Verb::option(const std::string&, std::vector<std::string>&, const std::string&) const;

Option Verb::flag(const std::string& names, bool& into, const std::string& help) const {
  return Option(app_->add_flag(names, into, help));
}
Option Verb::flag(const std::string& names, std::string& into, const std::string& help) const {
  return Option(app_->add_flag(names, into, help));
}
Option Verb::named(const std::string& name) const { return Option(app_->get_option(name)); }
void Verb::footer(const std::string& text) const { app_->footer(text); }
std::string Verb::name() const { return app_->get_name(); }
bool Verb::given() const { return app_->parsed(); }

CommandLine::CommandLine(const std::string& about, const std::string& name, const std::string& version,
                         const std::string& footer)
    : app_(std::make_unique<CLI::App>(about, name)) {
  app_->footer(footer);
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
}
CommandLine::~CommandLine() = default;

Verb CommandLine::add_verb(const std::string& name, const std::string& summary) {
  return Verb(app_->add_subcommand(name, summary));
}

std::optional<int> CommandLine::parse(int argc, const char* const* argv) {
  for (CLI::App* verb : app_->get_subcommands({})) check_values(*verb);
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return app_->exit(error, std::cout, std::cerr) == 0 ? kFine : kUsage;
  }
}

}  // namespace tw::cli
