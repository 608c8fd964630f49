#pragma once

// The command line as the verbs see it. The library that reads it is large and is seen by command_line.cc alone.

#include <memory>
#include <optional>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): of the library
class App;
class Option;
}  // namespace CLI

namespace tw::cli {

// Exit codes.
inline constexpr int kFine = 0;
inline constexpr int kFailed = 1;         // refused or failed
inline constexpr int kUsage = 2;          // the command line was wrong
inline constexpr int kInterrupted = 130;  // ended by Ctrl-C, what was made so far was printed

// An option, a flag or an argument of a verb.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  const Option& shows_default() const;  // --help says what its variable holds now
  const Option& required() const;
  const Option& needs(const Option& other) const;
  const Option& excludes(const Option& other) const;
  const Option& takes(int words) const;
  const Option& takes_list() const;  // of one word, separated by commas

 private:
  CLI::Option* option_;
};

// A verb's options. What is read is put into the variables, which must live until the command line is parsed.
class Verb {
 public:
  explicit Verb(CLI::App* app) : app_(app) {}

  // names: "-t,--threads", or "MODEL" for an argument that goes by its place. T: std::string, uint32_t, std::optional
  // of these, uint64_t, float, std::vector<std::string>.
  template <class T>
  Option option(const std::string& names, T& into, const std::string& help) const;
  Option flag(const std::string& names, bool& into, const std::string& help) const;
  // "--name{value}" puts the value there when it is given without one.
  Option flag(const std::string& names, std::string& into, const std::string& help) const;

  [[nodiscard]] Option named(const std::string& name) const;
  void footer(const std::string& text) const;

  [[nodiscard]] std::string name() const;
  [[nodiscard]] bool given() const;  // after CommandLine::parse()

 private:
  CLI::App* app_;
};

class CommandLine {
 public:
  CommandLine(const std::string& about, const std::string& name, const std::string& version, const std::string& footer);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Verb add_verb(const std::string& name, const std::string& summary);

  // An exit code when that is all there is to do: help was asked for, or the words are wrong; it has been printed.
  // Otherwise one verb was given.
  [[nodiscard]] std::optional<int> parse(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace tw::cli
