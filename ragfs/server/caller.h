// Caller and TokenSet: who sent a request, and what the token allows.
//
// A token is kept as its SHA-256 only; a look-up compares with every kept one in constant time, so neither the answer's
// time nor a core dump tells a token. Not for: rules on single files. Thread-safety: immutable after it is made.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/error.h"
#include "ragfs/base/path.h"
#include "ragfs/config/config.h"

namespace ragfs::server {

struct Caller {
  std::string account;  // tenant, for Context::account and the access log
  Path root;            // nothing above it can be named
  bool read_only = false;
  size_t id = 0;  // tells callers apart: handles belong to one
  // Mounts, the cache and the metrics are the operator's: a token that is confined to a part of the tree has no say.
  bool is_operator() const { return root.view().is_root(); }
};

class TokenSet {
 public:
  static constexpr size_t kMinTokenBytes = 16;
  static constexpr size_t kMaxTokens = 1024;

  // Lines "TOKEN [account=NAME] [root=/PATH] [read-only]", '#' begins a comment; ';' parts entries as a line's end
  // does. Errors: config, naming the entry by its number and never by its text.
  static Result<TokenSet> parse(std::string_view text);
  // What the configuration names; an empty set when it names nothing. Errors: config; those of reading the file.
  static Result<TokenSet> load(const ServerConfig& config);

  bool empty() const { return entries_.empty(); }
  // nullptr for a token that is not in the set.
  const Caller* find(std::string_view token) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Entry {
    Digest digest;
    Caller caller;
  };
  static Digest digest_of(std::string_view token);
  std::vector<Entry> entries_;
};

}  // namespace ragfs::server
