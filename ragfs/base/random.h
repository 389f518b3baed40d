// Numbers that nobody can guess and no other process draws: identities, seeds, epochs.
//
// From the system (getrandom(2)); a call costs a system call. Not for: jitter and sampling (a std::minstd_rand of the
// thread does) or keys of encryption.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace ragfs {

uint64_t random_u64();
// Version 4 of RFC 9562, in lower case.
std::string random_uuid();

}  // namespace ragfs
