#include "ragfs/cli/shell_words.h"

namespace ragfs::cli {

Result<std::vector<std::string>> split_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else if (quote == '"' && c == '\\' && at + 1 < line.size()) {
        word += line[++at];
      } else {
        word += c;
      }
    } else if (c == ' ' || c == '\t' || c == '\r') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else if (c == '#' && !in_word) {
      break;
    } else {
      in_word = true;
      if (c == '\'' || c == '"') {
        quote = c;
      } else if (c == '\\' && at + 1 < line.size()) {
        word += line[++at];
      } else {
        word += c;
      }
    }
  }
  if (quote != 0) return fail(ErrorCode::invalid_argument, "a quote does not end on this line");
  if (in_word) words.push_back(std::move(word));
  return words;
}

}  // namespace ragfs::cli
