// Commands in the form that a Redis server reads: arrays of bulk strings.
//
// For: filling the buffer that one request sends. Not for: replies (resp_parser.h). Thread-safety: pure functions.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace ragfs::redis {

// Begins a command of `count` words, the name included; append_word() exactly as often follows.
void begin_command(std::string& out, size_t count);
void append_word(std::string& out, std::string_view word);
// One word, in two parts that are joined.
void append_word(std::string& out, std::string_view first, std::string_view second, std::string_view third = {});
void append_command(std::string& out, std::initializer_list<std::string_view> words);

}  // namespace ragfs::redis
