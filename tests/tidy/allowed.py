"""Exceptions from the house rules. Each names the file and the reason; an exception that nothing needs is a failure."""

# Files over 600 lines.
LONG_FILES: dict[str, str] = {}

# Functions over 70 lines, as "file:function".
LONG_FUNCTIONS = {
    "ragfs/config/keys_test.cc:rows": "one table, a row for each key of the configuration",
}

# Raw `new`.
RAW_NEW = {
    "ragfs/base/bytes.cc": "one allocation holds the reference count and the bytes; drop_ref() frees it",
    "ragfs/backends/mem/mem_content.cc": "constructs in memory that it allocated together with the content",
}

# `throw`.
THROWS = {
    "tests/redis/redis_groups.cc": "a test whose servers do not start fails, whatever it is about",
    "tests/redis/redis_server.cc": "a test whose server does not start fails, whatever it is about",
    "ragfs/base/bytes.cc": "no memory: what operator new does too, and nobody catches it",
}

# Sleeping in code or tests, where no pause point can take its place.
SLEEPS = {
    "ragfs/store/memory/spin_lock.cc": "after spinning and yielding, a waiter leaves the processor to the holder",
    "bench/bench_trace.cc": "an agent that thinks between two calls",
    "bench/bench_coalesce.cc": "the floor that is measured beside it: one thread sleeps as long as the backend takes",
    "tests/redis/fault_proxy.cc": "a slow network is what it plays",
    "tests/redis/redis_server.cc": "another process's state is waited for: there is nothing to be notified by",
    "tests/redis/coherence_test.cc": "how long readers meet a stopped or killed server is the measure",
    "tests/redis/redis_fixture.h": "the same, asked again and again within a bound",
    "tests/contract/redis_contract_test.cc": "keys expire by the server's own clock",
    "tests/contract/engine_contract_test.cc": "values expire by the engine's own clock",
    "tests/engines/plugins/slow_engine.cc": "an engine that takes its time is what is met",
    "tests/engines/engine_fixture.cc": "another process's state is waited for: there is nothing to be notified by",
    "bench/slow_file_system.h": "a backend that takes its time is what is measured",
}

# Writing to std::cout or std::cerr outside ragfs/cli.
CONSOLE: dict[str, str] = {}
