"""Many paths in one call, with the cache on: each its own answer, exact and never stale. Argument: a directory."""

import sys

import oracle

oracle.stand_in_for_openviking()
import ragfs_python  # noqa: E402

NotFound = oracle.pyagfs().AGFSNotFoundError
root = sys.argv[1]
client = ragfs_python.RAGFSBindingClient(config={"service_name": "t"})
client.mount("localfs", "/local", {"local_dir": root})
written = client.write_context("/local/d/one", content=b"page", abstract="about one", overview="more of it")
assert [(part["path"], part["bytes"], part["error"]) for part in written] == [
    ("/local/d/one/content.md", 4, None),
    ("/local/d/one/.abstract.md", 9, None),
    ("/local/d/one/.overview.md", 10, None),
], written
client.write_context("/local/d/two", content=b"x", content_name="other.md")

paths = ["/local/d/one/.overview.md", "/local/none", "/local/d/two/other.md"]
for _ in range(3):
    first, missing, last = client.read_many(paths)
    assert (first, last) == (b"more of it", b"x")
    assert isinstance(missing, NotFound), missing
    first, missing, last = client.stat_many(paths)
    assert first == client.stat(paths[0]) and last == client.stat(paths[2])
    assert isinstance(missing, NotFound), missing
    listed = client.list_with_abstracts("/local/d")
    assert [(one["rel_path"], one["abstract"]) for one in listed] == [("one", "about one"), ("two", None)], listed
assert client.read_many([]) == [] and client.stat_many([]) == []
deep = client.list_with_abstracts("/local/d", levels=2, show_hidden=True)
assert len(deep) == 6, deep
assert len(client.list_with_abstracts("/local/d", levels=2, node_limit=2)) == 2

# Every hit after a change is the change.
for turn in range(20):
    text = f"turn {turn}"
    client.write_context("/local/d/one", content=text.encode(), abstract=text)
    assert client.read_many(["/local/d/one/content.md", "/local/d/one/.abstract.md"]) == [text.encode()] * 2
    assert client.list_with_abstracts("/local/d")[0]["abstract"] == text
    assert client.stat_many(["/local/d/one/content.md"])[0]["size"] == len(text)
try:
    client.write_context("/local/d/one")
    sys.exit("nothing to write was accepted")
except Exception as error:
    assert "nothing" in str(error) or "given" in str(error), error
print("done")
