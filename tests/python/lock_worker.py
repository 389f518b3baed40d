"""Adds to a counter that a path lock alone protects. Arguments: directory, rounds, name of the lock's method, options
of path locks as JSON; rounds 0: takes the lock, says so and waits to be killed."""

import json
import sys
import time

import oracle

oracle.stand_in_for_openviking()
import ragfs_python  # noqa: E402

root, rounds, method, options = sys.argv[1], int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
client = ragfs_python.RAGFSBindingClient(config={"service_name": "t", "pathlock": options})
client.mount("localfs", "/local", {"local_dir": root})
if rounds == 0:
    lease = getattr(client, method)({}, "/local/d")
    print("locked", flush=True)
    time.sleep(600)
for _ in range(rounds):
    lease = getattr(client, method)({}, "/local/d", 60.0)
    with open(f"{root}/counter", encoding="ascii") as file:
        number = int(file.read())
    time.sleep(0.002)
    with open(f"{root}/counter", "w", encoding="ascii") as file:
        file.write(str(number + 1))
    client.pathlock_release({}, lease)
print("done")
