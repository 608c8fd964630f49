// The command line as a user meets it: exit codes, what goes where, JSON that parses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "cli/progress.h"
#include "cli/testing.h"

namespace tw::cli {
namespace {

using testing::HasSubstr;

const std::string kModel = "models/fable-3m-q8_0.gguf";

TEST(Cli, HelpTeachesEveryVerb) {
  const Ran help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const std::string verb : {"run", "inspect", "tokenize", "graph", "plan", "explain", "rules", "logits", "synth",
                                 "quantize", "bench", "lower", "simulate", "report"}) {
    EXPECT_THAT(help.out, HasSubstr(verb));
    const Ran verb_help = run({verb, "--help"});
    EXPECT_EQ(verb_help.code, 0) << verb;
    EXPECT_THAT(verb_help.out, HasSubstr("--help")) << verb;
  }
}

TEST(Cli, AWrongCommandLineIsUsage) {
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{},
                                                {"rum"},
                                                {"run", "--wrong"},
                                                {"run", kModel, "x", "--numerics", "int4"},
                                                {"plan", kModel, "--form", "chunk:0"},
                                                {"logits", kModel, "--tokens", "1,x"},
                                                {"run", kModel, "x", "--temp", "-1"},
                                                {"run", kModel, "x", "--order", "fast"},
                                                {"run", kModel, "x", "--isa", "sse9"}}) {
    const Ran ran = run(wrong);
    EXPECT_EQ(ran.code, 2) << (wrong.empty() ? "" : wrong[0]);
    EXPECT_NE(ran.err, "");
    EXPECT_EQ(ran.out, "");
  }
}

TEST(Cli, AFileThatIsNotThereIsRefusedByName) {
  for (const char* verb : {"run", "inspect", "tokenize", "graph", "plan", "explain", "logits", "bench"}) {
    std::vector<std::string> arguments{verb, "nowhere.gguf"};
    if (verb == std::string("tokenize") || verb == std::string("logits"))
      arguments.insert(arguments.end(), {"-p", "a"});
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 1) << verb;
    EXPECT_THAT(ran.err, HasSubstr("nowhere.gguf")) << verb;
    EXPECT_EQ(ran.out, "") << verb;
  }
}

TEST(Cli, InspectShowsTensorsAndTheVerdict) {
  const Ran text = run({"inspect", kModel});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, HasSubstr("This build can run it: qwen35moe, 8 layers"));
  const auto json = nlohmann::json::parse(run({"inspect", kModel, "--json"}).out);
  EXPECT_EQ(json["verdict"]["runs"], true);
  EXPECT_EQ(json["metadata"]["general.architecture"], "qwen35moe");
  EXPECT_GT(json["tensors"].size(), 100U);
}

TEST(Cli, TokenizePrintsIdsThatTheModelWasMadeWith) {
  const Ran ran = run({"tokenize", kModel, "-p", "Grandfather Frog smiled and", "--ids"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "2045,38,81,1103,1057,732,1575,271\n");
}

std::string hash_of(std::vector<std::string> more) {
  std::vector<std::string> arguments{"logits", kModel, "-p",    "The old king had three daughters, and",
                                     "--last", "4",    "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return nlohmann::json::parse(run(arguments).out)["hash"];
}

TEST(Cli, GraphAndPlanPrintEveryForm) {
  for (const char* form : {"decode", "chunk:16", "chunk:3:all", "batch:2"}) {
    EXPECT_THAT(run({"graph", kModel, "--form", form, "-c", "64"}).out, HasSubstr("gated_delta")) << form;
    const auto json = nlohmann::json::parse(run({"plan", kModel, "--form", form, "-c", "64", "--json"}).out);
    EXPECT_EQ(json["form"], form);
    EXPECT_GT(json["launches"].size(), 60U);
    EXPECT_GT(json["census"]["delta"], 0);
    EXPECT_GT(json["firings"]["add_norm"], 0);
    const auto& launch = json["launches"][0];
    EXPECT_EQ(launch["ops"][0]["result"], "embedding");
    EXPECT_EQ(launch["rules"][0], "embed_norm");
    EXPECT_GT(launch["bytes_read"], 0);
  }
}

TEST(Cli, AHeldRuleIsAbsentAndChangesNoHash) {
  const auto json = nlohmann::json::parse(run({"plan", kModel, "--hold", "add_norm,gemv_parts", "--json"}).out);
  EXPECT_FALSE(json["firings"].contains("add_norm"));
  EXPECT_FALSE(json["firings"].contains("gemv_parts"));
  EXPECT_TRUE(json["firings"].contains("glu_pair"));
  const std::string want = hash_of({});
  EXPECT_EQ(hash_of({"--hold", "add_norm,gemv_parts"}), want);
  EXPECT_EQ(hash_of({"--hold", "all"}), want);
  const Ran unknown = run({"plan", kModel, "--hold", "add_nrom"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("Did you mean add_norm?"));
}

TEST(Cli, ExplainAnswersWhyAndWhyNot) {
  const Ran why = run({"explain", kModel, "--why", "blk.0.mixed"});
  EXPECT_EQ(why.code, 0);
  EXPECT_THAT(why.out, HasSubstr("is computed by launch"));
  EXPECT_THAT(why.out, HasSubstr("gemv_norm_epilogue on"));
  const Ran held =
      run({"explain", kModel, "--hold", "glu_pair", "--why-not", "glu_pair", "--at", "blk.0.ffn_hidden_shexp"});
  EXPECT_THAT(held.out, HasSubstr("the rule is held back"));
  const Ran rows = run({"explain", kModel, "--form", "chunk:8", "--why-not", "rope_parts"});
  EXPECT_THAT(rows.out, HasSubstr("more than one row"));
  const Ran none = run({"explain", kModel, "--why-not", "sandwich_norm"});
  EXPECT_THAT(none.out, HasSubstr("its pattern is not in this step"));
  EXPECT_EQ(run({"explain", kModel, "--why-not", "no_rule"}).code, 2);
  EXPECT_EQ(run({"explain", kModel, "--why", "no_op"}).code, 2);
  EXPECT_EQ(run({"explain", kModel, "--at", "blk.0.mixed"}).code, 2) << "--at belongs to --why-not";
}

TEST(Cli, ExplainComparesPlans) {
  const Ran diff = run({"explain", kModel, "--diff", "decode", "decode-gemv_parts"});
  EXPECT_EQ(diff.code, 0);
  EXPECT_THAT(diff.out, HasSubstr("census gemv_parts"));
  EXPECT_THAT(diff.out, HasSubstr("\n+ gemv_q8 of matmul blk.0.delta_q"));
  const auto json = nlohmann::json::parse(run({"explain", kModel, "--diff", "decode", "decode", "--json"}).out);
  EXPECT_TRUE(json["census"].empty());
  EXPECT_TRUE(json["only_a"].empty());
  EXPECT_EQ(run({"explain", kModel, "--diff", "decode", "decode-nothing"}).code, 2);
}

// The page on the rules holds what the command prints, so that it cannot fall behind.
TEST(Cli, ThePageOnTheRulesIsWhatTheCommandPrints) {
  const std::string page = read_file("docs/rules.md");
  for (const std::vector<std::string>& command : {std::vector<std::string>{"rules", "--markdown"},
                                                  {"rules", "--families", "--markdown"},
                                                  {"explain", kModel, "--why", "blk.0.mixed"}}) {
    const Ran ran = run(command);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.out, "");
    EXPECT_THAT(page, HasSubstr(ran.out));
  }
}

TEST(Cli, TheHashOfTheLogitsIsOneWhateverTheyAreMadeWith) {
  const std::string want = hash_of({"--threads", "1"});
  EXPECT_EQ(hash_of({"--threads", "2"}), want);
  EXPECT_EQ(hash_of({"--isa", "scalar"}), want);
  for (const char* chunk : {"1", "7", "16", "17", "64"}) EXPECT_EQ(hash_of({"--chunk", chunk}), want) << chunk;
  EXPECT_NE(hash_of({"--numerics", "precise"}), want);
}

TEST(Cli, FastDeltaHasOneHashForCutsBetweenChunks) {
  std::string tokens = "1";
  for (int token = 2; token <= 80; ++token) tokens += fmt::format(",{}", token);
  const auto hash = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"logits", kModel, "--tokens", tokens, "--json", "--order"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return nlohmann::json::parse(run(arguments).out)["hash"].get<std::string>();
  };
  const std::string want = hash({"fast-delta", "--threads", "1"});
  EXPECT_NE(want, hash({"strict"}));
  EXPECT_EQ(want, hash({"fast-delta", "--threads", "2"}));
  EXPECT_EQ(want, hash({"fast-delta", "--isa", "scalar"}));
  for (const char* chunk : {"32", "64"}) EXPECT_EQ(want, hash({"fast-delta", "--chunk", chunk})) << chunk;
  EXPECT_EQ(hash({"fast-delta", "--chunk", "31"}), hash({"strict"})) << "calls of fewer rows than a chunk";
  EXPECT_EQ(hash({"fast-delta", "--state", "bf16"}), hash({"strict", "--state", "bf16"}));
}

TEST(Cli, APlanSaysItsOrder) {
  const std::vector<std::string> plan{"plan", kModel, "-c", "128", "--order", "fast-delta", "--form", "chunk:70"};
  const Ran ran = run(plan);
  EXPECT_THAT(ran.out, testing::StartsWith("schedule qwen35moe chunk:70 int8 fast-delta\n"));
  EXPECT_THAT(ran.out, HasSubstr("2 chunks of 32 rows, then 6 one after the other"));
  std::vector<std::string> json = plan;
  json.emplace_back("--json");
  EXPECT_EQ(nlohmann::json::parse(run(json).out)["order"], "fast-delta");
  EXPECT_THAT(run({"plan", kModel, "-c", "128", "--form", "chunk:70"}).out, HasSubstr("70 rows one after the other"));
}

TEST(Cli, LogitsAreWrittenAsRowsOfFloats) {
  const Scratch file("logits.f32");
  const Ran ran = run({"logits", kModel, "--tokens", "2045,38,81", "--last", "2", "-o", file.path()});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr("2 rows of 2048 logits, hash "));
  EXPECT_EQ(std::filesystem::file_size(file.path()), 2U * 2048 * 4);
}

TEST(Cli, RunPrintsTheStoryOnStdoutAndTheRestOnStderr) {
  const Ran ran = run({"run", "-p", "Once upon a time", "-n", "12", "--temp", "0"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(ran.out.starts_with("Once upon a time")) << ran.out;
  EXPECT_GT(ran.out.size(), 30U);
  EXPECT_THAT(ran.err, HasSubstr("decode 12 tokens"));
}

TEST(Cli, WithAModelFlagTheFirstWordIsThePrompt) {
  const Ran ran = run({"run", "-m", kModel, "The fox said", "-n", "2", "-q"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(ran.out.starts_with("The fox said")) << ran.out;
  EXPECT_EQ(run({"run", "-m", kModel, kModel, "The fox said"}).code, 2);
  EXPECT_EQ(run({"run", "-p", "a", "-f", "README.md"}).code, 2);
}

TEST(Cli, ATextInPlaceOfTheModelIsToldWhereItBelongs) {
  const Ran ran = run({"run", "Once upon a time", "-n", "2"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("Once upon a time: the file cannot be opened"));
  EXPECT_THAT(ran.err, HasSubstr("is given with -p"));
}

TEST(Cli, ANumberIsRefusedWhenItIsEmptyNegativeOrTooLarge) {
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"-n", ""},
                                                {"-n", "-1"},
                                                {"-n", "4294967296"},
                                                {"--seed", "-1"},
                                                {"--seed", "18446744073709551616"},
                                                {"--temp", ""},
                                                {"--top-p", ""},
                                                {"-c", "12x"}}) {
    std::vector<std::string> arguments{"run", "-p", "a"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(run(arguments).code, 2) << wrong[0] << " '" << wrong[1] << "'";
  }
  EXPECT_EQ(run({"run", "-p", "a", "-n", "1", "--seed", "18446744073709551615"}).code, 0);
}

TEST(Cli, AnEmptyNameIsRefused) {
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"inspect", ""},
                                                {"run", "", "a", "-n", "1"},
                                                {"run", "-m", "", "-p", "a", "-n", "1"},
                                                {"run", "-f", ""},
                                                {"run", "--batch", ""},
                                                {"tokenize", kModel, "-f", ""},
                                                {"bench", ""},
                                                {"explain", kModel, "--why", ""},
                                                {"explain", kModel, "--why-not", ""},
                                                {"logits", kModel, "--tokens", ""},
                                                {"logits", kModel, "--tokens", "1", "-o", ""},
                                                {"logits", kModel, "--tokens", "1", "--isa", ""},
                                                {"synth", "--arch", "qwen3", "-o", ""},
                                                {"quantize", kModel, "", "Q4_0"}}) {
    const Ran ran = run(wrong);
    EXPECT_EQ(ran.code, 2) << wrong[0] << " " << wrong[1];
    EXPECT_EQ(ran.out, "") << wrong[0] << " " << wrong[1];
  }
}

TEST(Cli, FlagsThatContradictEachOtherAreUsage) {
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"run", kModel, "x", "-p", "y"},
                                                {"run", kModel, "x", "-f", "README.md"},
                                                {"run", "-m", kModel, "x", "--batch", "README.md"},
                                                {"tokenize", kModel, "-p", "x", "--ids", "--json"},
                                                {"tokenize", kModel},
                                                {"rules", "--json", "--markdown"},
                                                {"logits", kModel},
                                                {"logits", kModel, "--tokens", "1", "--chunk", "7", "-b", "9"},
                                                {"bench", kModel, "--pp", "0", "--tg", "0"}}) {
    const Ran ran = run(wrong);
    EXPECT_EQ(ran.code, 2) << wrong[0] << " " << wrong.back();
    EXPECT_EQ(ran.out, "") << wrong[0] << " " << wrong.back();
  }
}

TEST(Cli, NumbersOutOfRangeAreUsageWhetherTheyAreUsedOrNot) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"plan", kModel, "-b", "0"},
        {"plan", kModel, "-b", "513"},
        {"explain", kModel, "-t", "100000"},
        {"logits", kModel, "--tokens", "1", "--chunk", "0"},
        {"logits", kModel, "--tokens", "1", "--last", "0"},
        {"logits", kModel, "--tokens", "1,"},
        {"logits", kModel, "--tokens", "99999999999"},
        {"bench", kModel, "--pp", "4000000000", "-d", "4000000000"},
        {"bench", kModel, "--pp", "4", "--tg", "2", "-d", "4294967295"},
        {"synth", "--arch", "qwen3", "--shape", "layers=99999999999", "-o", "nowhere.gguf"}}) {
    EXPECT_EQ(run(wrong).code, 2) << wrong[0] << " " << wrong.back();
  }
}

TEST(Cli, ADeviceIsNotReplacedByAFile) {
  // A pipe stands for all that is no regular file, so that a fault costs nobody a device.
  const Scratch pipe("pipe");
  ASSERT_EQ(mkfifo(pipe.path().c_str(), 0600), 0);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"synth", "--arch", "qwen3", "-o", pipe.path()},
        {"quantize", kModel, pipe.path(), "Q4_0"},
        {"synth", "--arch", "qwen3", "-o", std::filesystem::temp_directory_path().string()}}) {
    const Ran ran = run(command);
    EXPECT_EQ(ran.code, 1);
    EXPECT_THAT(ran.err, HasSubstr("expected a regular file or none"));
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe.path()));
}

// Runs the program in a process of its own, whose standard output is `out` (negative: nowhere), and tells it to end
// once it listens.
struct Ended {
  int code = -1;
  bool by_signal = false;
  std::string err;
};
Ended run_apart(const std::vector<std::string>& arguments, int out, bool interrupt) {
  std::fflush(nullptr);
  const Scratch err("stderr.txt");
  const pid_t child = fork();
  if (child == 0) {
    dup2(out < 0 ? open("/dev/null", O_WRONLY) : out, STDOUT_FILENO);
    dup2(open(err.path().c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    std::vector<const char*> argv{"tilewright"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    _exit(run_app(static_cast<int>(argv.size()), argv.data()));
  }
  int status = 0;
  const std::string status_file = "/proc/" + std::to_string(child) + "/status";
  for (bool sent = !interrupt; !sent && waitpid(child, &status, WNOHANG) == 0; usleep(1000)) {
    const std::string text = read_file(status_file);
    const size_t caught = text.find("SigCgt:");
    if (caught == std::string::npos || (std::stoull(text.substr(caught + 7), nullptr, 16) >> (SIGINT - 1) & 1) == 0)
      continue;
    kill(child, SIGINT);
    sent = true;
  }
  if (status == 0) waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status), read_file(err.path())};
}

TEST(Cli, CtrlCEndsWithItsOwnCode) {
  const Scratch prompt("long-prompt.txt"), made("interrupted.gguf");
  std::ofstream file(prompt.path());
  for (int i = 0; i < 20000; ++i) file << "once upon a time ";
  file.close();
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"run", kModel, "-f", prompt.path(), "-c", "200000", "-b", "1"},
        {"run", kModel, "-p", "a", "-n", "1000000", "-c", "1000000", "--ignore-eos"},
        {"bench", kModel, "--pp", "100000", "-b", "16", "-r", "1"},
        {"bench", kModel, "--pp", "0", "--tg", "1000000", "-r", "1"},
        {"synth", "--arch", "qwen3", "--shape", "layers=2000,width=256", "-o", made.path()},
        {"logits", kModel, "-b", "1", "-c", "200000", "--last", "1", "-p",
         read_file(prompt.path()).substr(0, 100000)}}) {
    const Ended ended = run_apart(command, -1, true);
    EXPECT_EQ(ended.code, 130) << command[0];
    EXPECT_FALSE(ended.by_signal) << command[0];
  }
  const std::filesystem::path folder = std::filesystem::path(made.path()).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_NE(entry.path().string().substr(0, made.path().size()), made.path()) << "a file was left behind";
  }
}

TEST(Cli, WhatCannotBeWrittenIsAFailureAndEndsTheRun) {
  const int full = open("/dev/full", O_WRONLY);
  if (full < 0) GTEST_SKIP() << "this system has no /dev/full";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"run", kModel, "-p", "a", "-n", "1000000", "-c", "1000000", "--ignore-eos"},
        {"inspect", kModel},
        {"plan", kModel, "--json"},
        {"tokenize", kModel, "-p", "a"}}) {
    EXPECT_EQ(run_apart(command, full, false).code, 1) << command[0];
  }
  close(full);
}

TEST(Cli, ProgressSaysHowMuchOfWhatAndHowFast) {
  EXPECT_EQ(progress_line(uint64_t{3} << 20, uint64_t{12} << 20, 1.5),
            "preparing weights [#######.......................]  25%  3.0 MiB of 12.0 MiB, 2.0 MiB/s");
  EXPECT_EQ(progress_line(0, 0, 0), "preparing weights [##############################] 100%  0 B of 0 B, 0 B/s");
}

TEST(Cli, AnEmptyPromptIsTheBeginningOfAText) {
  const auto json = nlohmann::json::parse(run({"run", "-p", "", "-n", "1", "--json"}).out);
  EXPECT_EQ(json["prompt"], "");
  EXPECT_EQ(json["prompt_tokens"].size(), 1U);
}

TEST(Cli, APromptOfABatchThatDoesNotFitIsNamed) {
  const Scratch file("long.txt");
  std::ofstream(file.path()) << "a\n\nOnce upon a time there was an old woman\n";
  const Ran ran = run({"run", kModel, "--batch", file.path(), "-c", "4"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr(file.path() + " line 3"));
  std::ofstream many(file.path());
  for (int i = 0; i < 65; ++i) many << "a\n";
  many.close();
  EXPECT_THAT(run({"run", kModel, "--batch", file.path()}).err, HasSubstr("holds 65 lines"));
}

TEST(Cli, ARefusalLeavesStdoutEmpty) {
  for (const std::vector<std::string>& refused :
       {std::vector<std::string>{"run", "-p", "Once upon a time there was a", "-c", "4"},
        {"run", "-f", "models"},
        {"run", "-p", "a", "-t", "100000"},
        {"run", "-p", "a", "--stop", ""}}) {
    const Ran ran = run(refused);
    EXPECT_NE(ran.code, 0) << refused[2];
    EXPECT_EQ(ran.out, "") << refused[2];
    EXPECT_NE(ran.err, "") << refused[2];
  }
}

TEST(Cli, RunEndsAtAStopStringWithoutPrintingIt) {
  const auto free =
      nlohmann::json::parse(run({"run", "-p", "Once upon a time", "-n", "40", "--temp", "0", "--json"}).out);
  const std::string text = free["text"];
  ASSERT_GT(text.size(), 20U);
  const std::string stop = text.substr(10, 5);
  const auto stopped = nlohmann::json::parse(
      run({"run", "-p", "Once upon a time", "-n", "40", "--temp", "0", "--json", "--stop", stop}).out);
  EXPECT_EQ(stopped["ended"], "stop string");
  EXPECT_EQ(stopped["text"], text.substr(0, text.find(stop)));
}

TEST(Cli, AFullContextEndsWithAMessage) {
  const Ran ran = run({"run", "-p", "Once upon a time", "-n", "100", "-c", "16", "--ignore-eos"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.err, HasSubstr("The context of 16 positions is full"));
  const Ran none = run({"run", "-p", "Once upon a time there was a", "-c", "4"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("it holds 4"));
}

TEST(Cli, ABatchGivesEachLineTheTextItHasAlone) {
  const Scratch file("prompts.txt");
  std::ofstream(file.path()) << "The fox said\nOnce upon a time\r\n\r\nLong ago\n";
  const auto batch =
      nlohmann::json::parse(run({"run", kModel, "--batch", file.path(), "-n", "16", "--seed", "5", "--json"}).out);
  ASSERT_EQ(batch.size(), 3U);
  for (const auto& one : batch) {
    const auto alone = nlohmann::json::parse(
        run({"run", kModel, one["prompt"].get<std::string>(), "-n", "16", "--seed", "5", "--json"}).out);
    EXPECT_EQ(one["tokens"], alone["tokens"]) << one["prompt"];
  }
}

TEST(Cli, ASynthesizedModelIsInspectedQuantizedAndRun) {
  const Scratch made("synth.gguf"), small("synth-q4.gguf");
  ASSERT_EQ(run({"synth", "--arch", "qwen3", "--format", "F32", "--seed", "3", "-o", made.path()}).code, 0);
  ASSERT_EQ(run({"quantize", made.path(), small.path(), "Q8_0"}).code, 0);
  EXPECT_LT(std::filesystem::file_size(small.path()), std::filesystem::file_size(made.path()));
  const auto json = nlohmann::json::parse(run({"inspect", small.path(), "--json"}).out);
  EXPECT_EQ(json["verdict"]["runs"], true) << json["verdict"];
  EXPECT_EQ(run({"run", small.path(), "abc", "-n", "4", "-q"}).code, 0);
  EXPECT_EQ(run({"quantize", made.path(), small.path(), "Q9_X"}).code, 2);
}

TEST(Cli, BenchReportsSharesOfWhatWasMeasured) {
  const auto json = nlohmann::json::parse(
      run({"bench", kModel, "--pp", "16", "--tg", "4", "-r", "1", "--threads", "1", "--json"}).out);
  EXPECT_GT(json["stream_read_bytes_per_second"], 0);
  EXPECT_GT(json["int8_dot_peak_per_second"], 0);
  ASSERT_EQ(json["tests"].size(), 2U);
  for (const auto& test : json["tests"]) EXPECT_GT(test["tokens_per_second"], 0);
}

TEST(Cli, BenchProfilesTheStepsItTimes) {
  const Scratch trace("trace.json");
  const auto json = nlohmann::json::parse(run({"bench", kModel, "--pp", "16", "--tg", "4", "-d", "7", "--sequences",
                                               "2", "-r", "2", "--json", "--profile=launches", "--trace", trace.path()})
                                              .out);
  const auto& phases = json["profile"]["phases"];
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(phases[0]["phase"], "prefill");
  EXPECT_EQ(phases[0]["steps"], 2);
  EXPECT_EQ(phases[1]["phase"], "batch of 2");
  EXPECT_EQ(phases[1]["tokens"], 2 * 4 * 2);
  for (const auto& phase : phases) {
    double shares = phase["starting_share"];
    for (const auto& kind : phase["kinds"]) {
      shares += kind["share"].get<double>() + kind["waited_share"].get<double>();
    }
    EXPECT_NEAR(shares, 1, 1e-9) << phase["phase"];
  }
  EXPECT_EQ(json["profile"]["forms"].size(), 2U);
  EXPECT_FALSE(nlohmann::json::parse(std::ifstream(trace.path()))["traceEvents"].empty());
  const Ran unwritten = run({"bench", kModel, "--pp", "2", "--tg", "0", "-r", "1", "--trace", "/no/such/trace.json"});
  EXPECT_EQ(unwritten.code, 1);
  EXPECT_THAT(unwritten.out, HasSubstr("pp2"));  // what was measured is not lost
  EXPECT_EQ(run({"bench", kModel, "--profile=everything"}).code, 2);
  EXPECT_EQ(run({"bench", kModel, "-c", "16"}).code, 1);
}

}  // namespace
}  // namespace tw::cli
