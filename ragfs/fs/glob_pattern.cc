// The pattern is parsed to tokens, those are compiled to a small program, and the program runs as a nondeterministic
// automaton over all its states at once (Thompson), so no pattern can make it go back.
#include "ragfs/fs/glob_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "ragfs/fs/utf8.h"

namespace ragfs {
namespace {

constexpr int kMaxNesting = 64;

enum class TokenKind : uint8_t {
  character,
  any_character,      // ?
  star,               // *
  character_class,    // [...]
  alternatives,       // {...}
  everything,         // ** alone
  recursive_prefix,   // **/ at the start
  recursive_between,  // /**/
  recursive_suffix,   // /** at the end
};

struct Token {
  TokenKind kind = TokenKind::character;
  char32_t code = 0;
  bool negated = false;
  std::vector<std::pair<char32_t, char32_t>> ranges;
  std::vector<std::vector<Token>> branches;
};

std::string shown(char32_t code) {
  std::string text;
  if (code > kMaxCodePoint) {
    text += static_cast<char>(code - kMaxCodePoint - 1);
  } else {
    append_utf8(text, code);
  }
  return text;
}

// `pattern` without empty and "." components.
std::string fold_components(std::string_view pattern) {
  std::string folded;
  while (!pattern.empty()) {
    const size_t slash = pattern.find('/');
    const std::string_view component = pattern.substr(0, slash);
    pattern = slash == std::string_view::npos ? std::string_view{} : pattern.substr(slash + 1);
    if (component.empty() || component == ".") continue;
    if (!folded.empty()) folded += '/';
    folded += component;
  }
  return folded;
}

class GlobParser {
 public:
  explicit GlobParser(std::string_view pattern) : pattern_(pattern) {
    while (!pattern.empty()) text_.push_back(take_code_point(pattern));
  }

  Result<std::vector<Token>> parse() {
    std::vector<Token> tokens;
    if (!branch(tokens, 0)) return error();
    if (at_ < text_.size()) {
      why_ = "unopened alternate group; missing '{' (maybe escape '}' with '[}]'?)";
      return error();
    }
    return tokens;
  }

 private:
  std::unexpected<Error> error() const {
    return fail(ErrorCode::invalid_operation,
                fmt::format("invalid glob pattern: error parsing glob '{}': {}", pattern_, why_));
  }
  bool refuse(std::string why) {
    why_ = std::move(why);
    return false;
  }
  bool done() const { return at_ == text_.size(); }
  bool next_is(char32_t code) const { return !done() && text_[at_] == code; }
  bool at_branch_end(int nesting) const {
    return done() || (nesting > 0 && (text_[at_] == ',' || text_[at_] == '}')) || text_[at_] == '}';
  }

  // Tokens up to the end of the pattern or, within braces, up to ',' or '}'.
  bool branch(std::vector<Token>& tokens, int nesting) {
    while (!at_branch_end(nesting)) {
      const char32_t code = text_[at_++];
      switch (code) {
        case '?': tokens.push_back({.kind = TokenKind::any_character}); break;
        case '*': star(tokens, nesting); break;
        case '[':
          if (!character_class(tokens)) return false;
          break;
        case '{':
          if (!alternatives(tokens, nesting + 1)) return false;
          break;
        case '\\':
          if (done()) return refuse("dangling '\\'");
          tokens.push_back({.code = text_[at_++]});
          break;
        default: tokens.push_back({.code = code});
      }
    }
    return true;
  }

  void star(std::vector<Token>& tokens, int nesting) {
    if (!next_is('*')) {
      tokens.push_back({.kind = TokenKind::star});
      return;
    }
    const bool at_start = tokens.empty();
    const bool after_between = !at_start && (tokens.back().kind == TokenKind::recursive_prefix ||
                                             tokens.back().kind == TokenKind::recursive_between);
    const bool after_slash = !at_start && tokens.back().kind == TokenKind::character && tokens.back().code == '/';
    ++at_;
    const bool whole = (at_start || after_between || after_slash) && (at_branch_end(nesting) || next_is('/'));
    if (!whole) {
      tokens.push_back({.kind = TokenKind::star});
      return;
    }
    const bool between = next_is('/');
    if (between) ++at_;
    if (at_start) {
      tokens.push_back({.kind = between ? TokenKind::recursive_prefix : TokenKind::everything});
    } else if (after_slash) {
      tokens.back().kind = between ? TokenKind::recursive_between : TokenKind::recursive_suffix;
    } else if (!between) {
      const bool prefix = tokens.back().kind == TokenKind::recursive_prefix;
      tokens.back().kind = prefix ? TokenKind::everything : TokenKind::recursive_suffix;
    }
  }

  bool character_class(std::vector<Token>& tokens) {
    Token token{.kind = TokenKind::character_class};
    if (next_is('!') || next_is('^')) {
      token.negated = true;
      ++at_;
    }
    bool first = true;
    bool in_range = false;
    while (true) {
      if (done()) return refuse("unclosed character class; missing ']'");
      const char32_t code = text_[at_++];
      if (code == ']' && !first) break;
      if (code == '-' && !first && !in_range) {
        in_range = true;
        continue;
      }
      if (in_range) {
        if (token.ranges.back().first > code) {
          return refuse(fmt::format("invalid range; '{}' > '{}'", shown(token.ranges.back().first), shown(code)));
        }
        token.ranges.back().second = code;
        in_range = false;
      } else {
        token.ranges.emplace_back(code, code);
      }
      first = false;
    }
    if (in_range) token.ranges.emplace_back('-', '-');
    tokens.push_back(std::move(token));
    return true;
  }

  bool alternatives(std::vector<Token>& tokens, int nesting) {
    if (nesting > kMaxNesting) return refuse("alternate groups are nested too deep");
    Token token{.kind = TokenKind::alternatives};
    while (true) {
      token.branches.emplace_back();
      if (!branch(token.branches.back(), nesting)) return false;
      if (done()) return refuse("unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)");
      if (text_[at_++] == '}') break;
    }
    tokens.push_back(std::move(token));
    return true;
  }

  std::string_view pattern_;
  std::vector<char32_t> text_;
  size_t at_ = 0;
  std::string why_;
};

}  // namespace

class GlobCompiler {
 public:
  explicit GlobCompiler(GlobPattern& out) : out_(out) {}

  void sequence(const std::vector<Token>& tokens) {
    for (const Token& token : tokens) emit(token);
  }
  void accept() { add({.op = GlobPattern::Op::accept}); }

 private:
  using Op = GlobPattern::Op;

  uint32_t here() const { return static_cast<uint32_t>(out_.program_.size()); }
  uint32_t add(GlobPattern::Instruction instruction) {
    out_.program_.push_back(instruction);
    return here() - 1;
  }
  void slash() { add({.op = Op::character, .code = '/'}); }
  void repeat(Op op) {
    const uint32_t start = add({.op = Op::split, .target = here() + 1});
    add({.op = op});
    add({.op = Op::jump, .target = start});
    out_.program_[start].target2 = here();
  }

  void emit(const Token& token) {
    switch (token.kind) {
      case TokenKind::character: add({.op = Op::character, .code = token.code}); break;
      case TokenKind::any_character: add({.op = Op::any_in_component}); break;
      case TokenKind::star: repeat(Op::any_in_component); break;
      case TokenKind::everything: repeat(Op::any); break;
      case TokenKind::character_class:
        out_.classes_.push_back(token.ranges);
        add({.op = token.negated ? Op::none_of : Op::one_of,
             .target = static_cast<uint32_t>(out_.classes_.size() - 1)});
        break;
      case TokenKind::alternatives: choose(token.branches); break;
      case TokenKind::recursive_prefix: recursive_prefix(); break;
      case TokenKind::recursive_between: recursive_between(); break;
      case TokenKind::recursive_suffix:
        slash();
        repeat(Op::any);
        break;
    }
  }

  void choose(const std::vector<std::vector<Token>>& branches) {
    std::vector<uint32_t> ends;
    for (const std::vector<Token>& branch : branches) {
      const uint32_t start = add({.op = Op::split, .target = here() + 1});
      sequence(branch);
      ends.push_back(add({.op = Op::jump}));
      out_.program_[start].target2 = here();
    }
    add({.op = Op::never});
    for (const uint32_t end : ends) out_.program_[end].target = here();
  }

  // Nothing, or anything that ends with a slash; within braces also a lone slash.
  void recursive_prefix() {
    const uint32_t start = add({.op = Op::split, .target = here() + 1});
    repeat(Op::any);
    slash();
    out_.program_[start].target2 = here();
  }

  // A slash, or anything between two of them.
  void recursive_between() {
    slash();
    recursive_prefix();
  }

  GlobPattern& out_;
};

Result<GlobPattern> GlobPattern::parse(std::string_view pattern) {
  const bool only_dots = pattern.find_first_not_of("./") == std::string_view::npos && pattern.find('.') != pattern.npos;
  const std::string folded = fold_components(pattern);
  if (pattern.empty() || (folded.empty() && only_dots)) {
    return fail(ErrorCode::invalid_operation, "empty glob pattern");
  }
  if (pattern.size() > kMaxGlobPatternBytes) {
    return fail(ErrorCode::invalid_operation, "invalid glob pattern: longer than 4096 bytes");
  }
  GlobPattern compiled;
  if (folded.empty()) {  // separators only: valid, matches nothing
    compiled.program_.push_back({.op = Op::never});
    return compiled;
  }
  const Result<std::vector<Token>> tokens = GlobParser(folded).parse();
  if (!tokens) return std::unexpected(tokens.error());
  GlobCompiler compiler(compiled);
  compiler.sequence(*tokens);
  compiler.accept();
  return compiled;
}

bool GlobPattern::takes(const Instruction& instruction, char32_t code) const {
  switch (instruction.op) {
    case Op::character: return code == instruction.code;
    case Op::any_in_component: return code != '/';
    case Op::any: return true;
    case Op::one_of:
    case Op::none_of: {
      if (code == '/') return false;
      const auto holds = [&](const std::pair<char32_t, char32_t>& range) {
        return range.first <= code && code <= range.second;
      };
      return std::ranges::any_of(classes_[instruction.target], holds) == (instruction.op == Op::one_of);
    }
    default: return false;
  }
}

// A set of places in the program, with constant-time insert, clear and test.
class GlobPattern::States {
 public:
  explicit States(size_t size) : seen_in_(size, 0) { list_.reserve(size); }

  // Adds `start` and all that is reached from it without taking a character.
  void add(const GlobPattern& pattern, uint32_t start) {
    pending_.assign(1, start);
    while (!pending_.empty()) {
      const uint32_t at = pending_.back();
      pending_.pop_back();
      if (seen_in_[at] == round_) continue;
      seen_in_[at] = round_;
      const Instruction& instruction = pattern.program_[at];
      if (instruction.op == Op::jump) {
        pending_.push_back(instruction.target);
      } else if (instruction.op == Op::split) {
        pending_.push_back(instruction.target2);
        pending_.push_back(instruction.target);
      } else if (instruction.op == Op::accept) {
        accepts_ = true;
      } else if (instruction.op != Op::never) {
        list_.push_back(at);
      }
    }
  }
  void clear() {
    list_.clear();
    ++round_;
    accepts_ = false;
  }
  bool accepts() const { return accepts_; }
  const std::vector<uint32_t>& list() const { return list_; }

 private:
  std::vector<uint32_t> list_;
  std::vector<uint32_t> pending_;
  std::vector<uint32_t> seen_in_;
  uint32_t round_ = 1;
  bool accepts_ = false;
};

GlobPattern::Answer GlobPattern::match(std::string_view rel_path) const {
  States now(program_.size());
  States next(program_.size());
  const auto step = [&](char32_t code) {
    next.clear();
    for (const uint32_t at : now.list()) {
      if (takes(program_[at], code)) next.add(*this, at + 1);
    }
    std::swap(now, next);
  };
  now.add(*this, 0);
  while (!rel_path.empty() && !now.list().empty()) step(take_code_point(rel_path));
  if (!rel_path.empty()) return {};
  Answer answer;
  answer.matches = now.accepts();
  step('/');
  // An accept behind the slash is no path; something must follow it.
  answer.below_may_match = !now.list().empty();
  return answer;
}

}  // namespace ragfs
