#include "ragfs/providers/redis/resp_command.h"

#include <charconv>

namespace ragfs::redis {
namespace {

void append_header(std::string& out, char kind, size_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.push_back(kind);
  out.append(digits, end);
  out.append("\r\n");
}

}  // namespace

void begin_command(std::string& out, size_t count) { append_header(out, '*', count); }

void append_word(std::string& out, std::string_view word) { append_word(out, word, {}); }

void append_word(std::string& out, std::string_view first, std::string_view second, std::string_view third) {
  append_header(out, '$', first.size() + second.size() + third.size());
  out.append(first).append(second).append(third).append("\r\n");
}

void append_command(std::string& out, std::initializer_list<std::string_view> words) {
  begin_command(out, words.size());
  for (const std::string_view word : words) append_word(out, word);
}

}  // namespace ragfs::redis
