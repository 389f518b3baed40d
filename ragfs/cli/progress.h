// Progress: one line on a terminal's standard error that says how far long work is.
//
// Silent where standard error is no terminal, with --json, and for work that ends within half a second. Redrawn at most
// ten times a second. Thread-safety: not synchronised.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ragfs/cli/console.h"

namespace ragfs::cli {

class Progress {
 public:
  // `total` 0 = unknown.
  Progress(Console& console, std::string what, uint64_t total);
  // Takes the line away.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(uint64_t items, uint64_t bytes);

 private:
  void draw(int64_t now_ns);

  Console& console_;
  const std::string what_;
  const uint64_t total_;
  const bool shown_;
  const int64_t start_ns_;
  int64_t next_draw_ns_;
  uint64_t items_ = 0;
  uint64_t bytes_ = 0;
  bool drawn_ = false;
};

}  // namespace ragfs::cli
