// Envelope: the one format of every cache object, whatever the provider (docs/formats.md, "Cache envelope").
//
// A fixed header, the path, the backend version, then the payload: a file's raw bytes or a packed listing. The checksum
// covers all of it. Decoding copies and allocates nothing: the views point into the object.
// Not for: deciding whether an object may be served (Coherence does that).
// Thread-safety: pure functions over values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ragfs/base/error.h"
#include "ragfs/cache/key_space.h"
#include "ragfs/cache/provider.h"

namespace ragfs {

// What is written beside the payload. Times are nanoseconds since 1970-01-01 UTC.
struct EnvelopeInfo {
  ObjectKind kind = ObjectKind::file;
  uint64_t identity_hash = 0;  // of the backend
  uint64_t epoch = 0;          // in which it was written
  uint64_t stamp = 0;          // mutation clock when the backend read began, or right after the write
  int64_t filled_at_ns = 0;
  int64_t expires_at_ns = 0;      // logical expiry; 0 = never
  uint64_t scope_generation = 0;  // clock of the last subtree mutation of the scope that the writer knew of
  uint64_t size = 0;              // the file's meta
  int64_t mtime_ns = 0;
  uint32_t mode = 0;
  std::string_view path;     // backend-relative, in the backend's identity
  std::string_view version;  // the backend's version of the path; "" = unknown
};

struct DecodedEnvelope {
  EnvelopeInfo info;
  std::string_view payload;
};

// Bytes of an envelope around a payload, without the payload.
size_t envelope_overhead_bytes(const EnvelopeInfo& info);

// The header (with path and version) of an envelope around `payload`; the object is header + payload.
// `path` and `version` must be at most 65,535 bytes, the payload at most 4 GiB - 1 (asserted; limits are far below).
std::string encode_envelope(const EnvelopeInfo& info, std::string_view payload);

// Reads the fields and checks magic, version, kind and all lengths; the checksum only where `verify` says so.
// An empty optional for whatever is not an intact envelope: a damaged object is a miss, never an error to a user.
std::optional<DecodedEnvelope> decode_envelope(std::string_view object, bool verify);

// The few fields that decide over a hit that was judged before, read where they lie.
struct EnvelopeGlance {
  uint64_t epoch = 0;
  int64_t filled_at_ns = 0;
  int64_t expires_at_ns = 0;
  size_t payload_at = 0;  // where in the object the payload begins
};
// What lies in `object` if it is an envelope of this kind, identity and path, with all lengths right; the checksum is
// not looked at. For objects that never left this process's memory; everything else goes through decode_envelope().
std::optional<EnvelopeGlance> glance_at_envelope(std::string_view object, ObjectKind kind, uint64_t identity_hash,
                                                 std::string_view path);

}  // namespace ragfs
