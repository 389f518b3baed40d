"""What is never cached: queues, server information, and what bypass_prefixes name. Arguments: a directory, "bypassed".

The report: prefixes were matched against the path below the mount, so the queue was cached and its size was 0 for ever.
"""

import sys

import oracle

oracle.stand_in_for_openviking()
import ragfs_python  # noqa: E402

bypassed = sys.argv[2] == "bypassed"
client = ragfs_python.RAGFSBindingClient(config={"service_name": "t"})
client.mount("localfs", "/local", {"local_dir": sys.argv[1]})
client.mount("queuefs", "/queue", {"backend": "memory"})
client.mount("serverinfofs", "/serverinfo", {"version": "1.0.0"})
client.mkdir("/queue/jobs")
client.mkdir("/local/tmp")


def objects():
    return client.cache_stats()["provider_metrics"]["dram_objects"]


before = objects()
for _ in range(3):
    assert client.read("/queue/jobs/size") == b"0"
    assert client.read("/queue/jobs/size") == b"0"
    client.write("/queue/jobs/enqueue", b"work")
    assert client.read("/queue/jobs/size") == b"1"
    assert b"work" in client.read("/queue/jobs/dequeue")
    assert client.read("/queue/jobs/size") == b"0"
    assert client.read("/serverinfo/version") == client.read("/serverinfo/version")
    client.read("/serverinfo/uptime")
    client.ls("/serverinfo")
assert objects() == before, "nothing of them is kept"
assert client.cache_stats()["hits"] == 0

client.write("/local/tmp/size", b"0")
before = objects()
assert client.read("/local/tmp/size") == client.read("/local/tmp/size") == b"0"
client.write("/local/kept", b"kept")
assert client.read("/local/kept") == client.read("/local/kept") == b"kept"
if bypassed:
    assert client.read("/local/tmp/size") == b"0" and client.cache_stats()["hits"] == 2
else:
    assert client.cache_stats()["hits"] >= 2
print("done")
