"""The parts of ./test: build presets, gtest programs, script tests, fuzzers, the report."""
