#include "ragfs/cache/lives/clean_marker.h"

#include <fmt/format.h>

#include "ragfs/cache/lives/sealed_record.h"
#include "ragfs/cache/rules.h"

namespace ragfs {
namespace {

constexpr uint32_t kMagic = 0x4d464752;  // "RGFM"
constexpr size_t kTermBytes = 16;
constexpr size_t kLeastRecordBytes = 26;

// False when it grows too large.
bool write_records(FieldWriter& body, const std::vector<RecordSnapshot>& records) {
  body.number(static_cast<uint32_t>(records.size()));
  for (const RecordSnapshot& record : records) {
    if (body.size() > kMaxMarkerBytes || record.ancestors.size() > UINT16_MAX) return false;
    body.number(record.id);
    body.number(record.value);
    body.number(record.marked_until_ns);
    body.number(static_cast<uint16_t>(record.ancestors.size()));
    for (const uint64_t ancestor : record.ancestors) body.number(ancestor);
  }
  return true;
}

bool read_records(FieldReader& body, std::vector<RecordSnapshot>& records) {
  const auto count = body.number<uint32_t>();
  if (count > body.left() / kLeastRecordBytes) return false;
  records.reserve(count);
  for (uint32_t i = 0; i < count && body.ok(); ++i) {
    RecordSnapshot& record = records.emplace_back();
    record.id = body.number<uint64_t>();
    record.value = body.number<uint64_t>();
    record.marked_until_ns = body.number<int64_t>();
    const auto ancestors = body.number<uint16_t>();
    if (ancestors > body.left() / sizeof(uint64_t)) return false;
    for (uint16_t at = 0; at < ancestors; ++at) record.ancestors.push_back(body.number<uint64_t>());
  }
  return body.ok();
}

}  // namespace

CacheKey clean_marker_key(std::string_view encoded_namespace, uint64_t life) {
  // One key for all lives is what a test of the rule takes apart.
  if (!rule_enabled(Rule::kMarkerNamedByLife)) return CacheKey(fmt::format("clean:{}:any", encoded_namespace));
  return CacheKey(fmt::format("clean:{}:{:016x}", encoded_namespace, life));
}

std::optional<std::string> encode_clean_marker(const CleanMarker& marker) {
  FieldWriter body;
  body.number(marker.life);
  body.text(marker.incarnation);
  body.number(marker.state.epoch);
  body.number(marker.state.clock);
  body.number(marker.state.seed);
  body.number(marker.state.closed_at_ns);
  body.number(static_cast<uint32_t>(marker.state.identities.size()));
  for (const IdentityTerm& identity : marker.state.identities) {
    body.number(identity.identity_hash);
    body.number(identity.term);
  }
  if (!write_records(body, marker.state.paths) || !write_records(body, marker.state.subtrees)) return std::nullopt;
  std::string text = seal_record(kMagic, kCleanMarkerVersion, std::move(body).take());
  if (text.size() > kMaxMarkerBytes) return std::nullopt;
  return text;
}

std::optional<CleanMarker> decode_clean_marker(std::string_view text) {
  const std::optional<std::string_view> opened = open_record(kMagic, kCleanMarkerVersion, text);
  if (!opened || text.size() > kMaxMarkerBytes) return std::nullopt;
  FieldReader body(*opened);
  CleanMarker marker;
  marker.life = body.number<uint64_t>();
  marker.incarnation = body.text();
  marker.state.epoch = body.number<uint64_t>();
  marker.state.clock = body.number<uint64_t>();
  marker.state.seed = body.number<uint64_t>();
  marker.state.closed_at_ns = body.number<int64_t>();
  const auto identities = body.number<uint32_t>();
  if (identities > body.left() / kTermBytes) return std::nullopt;
  for (uint32_t i = 0; i < identities; ++i) {
    const auto identity_hash = body.number<uint64_t>();
    marker.state.identities.push_back({identity_hash, body.number<uint64_t>()});
  }
  if (!read_records(body, marker.state.paths) || !read_records(body, marker.state.subtrees)) return std::nullopt;
  if (!body.done() || marker.life == 0) return std::nullopt;
  return marker;
}

}  // namespace ragfs
