#pragma once

// The rules behind validate(), by subject. check_ids must hold before the others are asked.

#include <fmt/format.h>

#include "spatial/issue.h"
#include "spatial/validate.h"

namespace tw::spatial {

class Findings {
 public:
  void add(std::string_view code, std::string text) { all_.push_back({code, {}, {}, {}, std::move(text)}); }
  void add(std::string_view code, StageId stage, std::string text) {
    all_.push_back({code, stage, {}, {}, std::move(text)});
  }
  void add(std::string_view code, BufferId buffer, std::string text) {
    all_.push_back({code, {}, buffer, {}, std::move(text)});
  }
  void add(std::string_view code, TensorId tensor, std::string text) {
    all_.push_back({code, {}, {}, tensor, std::move(text)});
  }
  void add(std::string_view code, StageId stage, BufferId buffer, std::string text) {
    all_.push_back({code, stage, buffer, {}, std::move(text)});
  }
  [[nodiscard]] bool empty() const { return all_.empty(); }
  std::vector<Finding> take() { return std::move(all_); }

 private:
  std::vector<Finding> all_;
};

// Names, sizes, ids and the buffers each stage has: S1 to S5.
void check_names(const Program& program, Findings& out);
void check_sizes(const Program& program, Findings& out);
void check_ids(const Program& program, Findings& out);
void check_inits(const Program& program, Findings& out);
// Loads and stores: S6 to S9.
void check_movement(const Program& program, Findings& out);
// Compute stages: S10 to S16.
void check_compute(const Program& program, Findings& out);
// Pages from writer to reader, folds, edges: S17 to S24.
void check_flow(const Program& program, Findings& out);
void check_fold(const Program& program, Findings& out);
void check_edges(const Program& program, Findings& out);
// Items and plan: S25, S26.
void check_work(const Program& program, Findings& out);

}  // namespace tw::spatial
