"""Hits through the cache: counted once, never stale, after close() and in a forked child too. Argument: a directory."""

import os
import sys

import oracle

oracle.stand_in_for_openviking()
import ragfs_python  # noqa: E402

root = sys.argv[1]
client = ragfs_python.RAGFSBindingClient(config={"service_name": "t"})
client.mount("localfs", "/local", {"local_dir": root})
client.write("/local/f", b"one")
assert client.read("/local/f") == b"one"
before = client.cache_stats()["hits"]
for _ in range(100):
    assert client.read("/local/f") == b"one"
assert client.cache_stats()["hits"] - before == 100, client.cache_stats()
assert client.get_stats("/local")["stats"]["operations"]["read"]["count"] == 101, client.get_stats("/local")

client.write("/local/f", b"two")
assert client.read("/local/f") == b"two"
with open(f"{root}/f", "wb") as file:
    file.write(b"behind")
assert client.read("/local/f", ctx={"bypass_cache": "true"}) == b"behind"
client.cache_invalidate("/local")
assert client.read("/local/f") == b"behind"
assert [type(one) for one in client.read_many(["/local/f", "/local/none"])][0] is bytes

# A forked child reads without the cache, and may not change behind its parent's back what that has cached.
child = os.fork()
if child == 0:
    ok = client.read("/local/f") == b"behind"
    try:
        client.write("/local/f", b"child")
        ok = False
    except oracle.pyagfs().AGFSPermissionDeniedError:
        pass
    sys.exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
assert client.read("/local/f") == b"behind"

client.close()
client.write("/local/f", b"three")
assert client.read("/local/f") == b"three"
print("done")
