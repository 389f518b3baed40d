// Epoch pointer, clean marker and witness as bytes: what was written is read, what is damaged is nothing.
#include <gtest/gtest.h>

#include "ragfs/cache/lives/clean_marker.h"
#include "ragfs/cache/lives/epoch_pointer.h"
#include "ragfs/cache/lives/hot_keys_file.h"
#include "ragfs/cache/lives/sealed_record.h"
#include "ragfs/cache/lives/witness.h"

namespace ragfs {
namespace {

CleanMarker full_marker() {
  CleanMarker marker{.life = 7, .incarnation = "run-1", .state = {}};
  marker.state = {.epoch = 9,
                  .clock = 77,
                  .seed = 3,
                  .closed_at_ns = 1'000,
                  .identities = {{1, 0}, {2, 5}},
                  .paths = {{11, 70, 0, {}}, {12, 71, INT64_MAX, {1, 2, 3}}},
                  .subtrees = {{13, 72, 500, {4}}}};
  return marker;
}

// Every single damaged byte, and every cut, must read as nothing.
template <typename Decode>
void expect_damage_is_noticed(const std::string& text, const Decode& decode) {
  for (size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x21);
    const bool reserved = at >= 5 && at < 8;
    EXPECT_FALSE(decode(damaged).has_value() && !reserved) << "byte " << at;
    EXPECT_FALSE(decode(text.substr(0, at)).has_value()) << "cut at " << at;
  }
  EXPECT_FALSE(decode(text + "x").has_value());
}

TEST(EpochPointer, ReadsWhatWasWrittenAndNothingElse) {
  const EpochPointer pointer{.life = 4, .epoch = 5, .written_at_ns = -1, .writer = "pid 1 on host"};
  const std::string text = encode_epoch_pointer(pointer);
  EXPECT_EQ(decode_epoch_pointer(text), pointer);
  expect_damage_is_noticed(text, decode_epoch_pointer);
  EXPECT_FALSE(decode_epoch_pointer(encode_epoch_pointer({.life = 0, .epoch = 5, .written_at_ns = 0, .writer = ""})));
}

TEST(EpochPointer, IsNamedByTheNamespace) { EXPECT_EQ(epoch_pointer_key("ns").text(), "epoch:ns"); }

TEST(CleanMarker, ReadsWhatWasWrittenAndNothingElse) {
  const CleanMarker marker = full_marker();
  const std::optional<std::string> text = encode_clean_marker(marker);
  ASSERT_TRUE(text);
  EXPECT_EQ(decode_clean_marker(*text), marker);
  expect_damage_is_noticed(*text, decode_clean_marker);
}

// Its records are named by path ids, which version 1 made in another way: they would refuse nothing.
TEST(CleanMarker, OfAnotherVersionIsNothing) {
  const std::string text = *encode_clean_marker(full_marker());
  const std::optional<std::string_view> body = open_record(0x4d464752, kCleanMarkerVersion, text);
  ASSERT_TRUE(body);
  EXPECT_TRUE(decode_clean_marker(seal_record(0x4d464752, kCleanMarkerVersion, *body)));
  for (const uint8_t other : {uint8_t{1}, uint8_t{kCleanMarkerVersion + 1}}) {
    EXPECT_FALSE(decode_clean_marker(seal_record(0x4d464752, other, *body))) << int{other};
  }
}

TEST(CleanMarker, IsNamedByItsLife) { EXPECT_EQ(clean_marker_key("ns", 0xab).text(), "clean:ns:00000000000000ab"); }

TEST(CleanMarker, IsNotMadeOverOneMebibyte) {
  CleanMarker marker = full_marker();
  marker.state.paths.assign(30'000, {1, 2, 0, {}});
  EXPECT_TRUE(encode_clean_marker(marker));
  marker.state.paths.assign(50'000, {1, 2, 0, {}});
  EXPECT_FALSE(encode_clean_marker(marker));
}

TEST(CleanMarker, ACountThatTheBytesCannotHoldIsRefusedBeforeMemoryIsTaken) {
  FieldWriter body;
  body.number(uint64_t{7});
  body.text("run");
  for (int i = 0; i < 4; ++i) body.number(uint64_t{1});
  body.number(UINT32_MAX);
  EXPECT_FALSE(decode_clean_marker(seal_record(0x4d464752, kCleanMarkerVersion, std::move(body).take())));
}

TEST(WitnessRecord, ReadsWhatWasWrittenAndNothingElse) {
  const WitnessRecord record{.life = 4, .place = 5, .written_at_ns = 6, .writer = "pid 1 on host"};
  const std::string text = encode_witness(record);
  EXPECT_EQ(decode_witness(text), record);
  expect_damage_is_noticed(text, decode_witness);
}

TEST(HotKeysRecord, ReadsWhatWasWrittenAndNothingElse) {
  const std::vector<HotKeysOfBackend> backends = {
      {7, {{"/a/b.md", ObjectKind::file, 9}, {"/a", ObjectKind::listing, 2}}}, {8, {}}};
  const std::string text = encode_hot_keys(backends);
  EXPECT_EQ(decode_hot_keys(text), backends);
  expect_damage_is_noticed(text, decode_hot_keys);
  EXPECT_FALSE(decode_hot_keys(encode_hot_keys({{7, {{"not/normal/", ObjectKind::file, 9}}}})));
  EXPECT_FALSE(decode_hot_keys(encode_hot_keys({{7, {{"/a", ObjectKind::subtree, 9}}}})));
  const HotKeysOfBackend many{7, std::vector<HotKey>(HotKeysFile::kMostKeys + 1, {"/a", ObjectKind::file, 1})};
  EXPECT_EQ(decode_hot_keys(encode_hot_keys({many}))->at(0).keys.size(), HotKeysFile::kMostKeys) << "cut when written";
}

TEST(SealedRecord, OfAnotherKindOrVersionIsNothing) {
  const std::string text = seal_record(1, 1, "body");
  EXPECT_EQ(open_record(1, 1, text), "body");
  EXPECT_FALSE(open_record(2, 1, text));
  EXPECT_FALSE(open_record(1, 2, text));
}

}  // namespace
}  // namespace ragfs
