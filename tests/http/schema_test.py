#!/usr/bin/env python3
"""schemathesis calls the server by its OpenAPI document: no 5xx, and no answer that the document does not show."""
# Builds first: ragfs

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from testing.checks import check, main  # noqa: E402
from testing import venv  # noqa: E402
from served import Server  # noqa: E402

EXAMPLES = 200 if os.environ.get("RAGFS_TEST_FULL") else 8
TIMEOUT_S = 1200
TOKEN = "admin-token-0123456789"
# "Not supported" is the only answer of these.
UNSUPPORTED = ("symlink", "readlink", "loadPlugin", "unloadPlugin")
# Not among the checks:
# - positive_data_acceptance: a path that fits the schema may be one that is not there, or a file where a directory is
#   wanted: 400 and 404 are right.
# - ensure_resource_availability: a file that was made may be renamed or removed by the next call.
CHECKS = ("not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
          "response_schema_conformance,negative_data_rejection,missing_required_header,unsupported_method,"
          "allow_header_conformance,use_after_free,ignored_auth")


def document_of(server, headers=None):
    status, document = server.json("GET", "/openapi.json", headers=headers)
    return document if status == 200 else {}


def run(t, server, document, phases="coverage,fuzzing", headers=(), examples=EXAMPLES, mode="all"):
    """One run over a document; what it printed."""
    file = server.home / "openapi.json"
    file.write_text(json.dumps(document))
    operations = "".join(
        f"[[operations]]\ninclude-operation-id = \"{name}\"\n"
        "[operations.checks]\nnot_a_server_error.expected-statuses = [\"2xx\", \"4xx\", 501]\n" for name in UNSUPPORTED)
    config = server.home / "schemathesis.toml"
    config.write_text(operations)
    program = Path(sys.prefix) / "bin" / "schemathesis"
    command = [program, "--config-file", config, "run", file, "--url", server.url, "--checks", CHECKS, "--mode", mode,
               "--phases", phases, "--max-examples", str(examples), "--seed", "20260101", "--warnings", "off",
               "--continue-on-failure", "--request-timeout", "20", "--suppress-health-check", "all"]
    for name, value in headers:
        command += ["--header", f"{name}:{value}"]
    done = subprocess.run(command, cwd=server.home, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=False, env={**os.environ, "COLUMNS": "150"})
    t.equal(done.returncode, 0, f"schemathesis:\n{done.stdout[-6000:]}\n{done.stderr[-2000:]}")
    t.true(server.alive(), f"the server lives: {server.stderr()[-2000:]}")
    return done.stdout


def narrowed(document):
    """The same document with paths and handles that are there, so that calls get past the first look-up."""
    document = json.loads(json.dumps(document))
    paths = {"enum": ["/memfs", "/memfs/a", "/memfs/d", "/memfs/d/b", "/memfs/d/e", "/local/a", "/local/d", "/"]}
    document["components"]["parameters"]["path"]["schema"] = paths
    document["components"]["parameters"]["id"]["schema"] = {"type": "integer", "minimum": 1, "maximum": 8}
    for name, item in document["paths"].items():
        for operation in item.values():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            mounts = name.endswith(("/mount", "/unmount"))
            for field in ("path", "newPath"):
                if field in body.get("properties", {}):
                    body["properties"][field] = {"enum": ["/m1", "/m2"]} if mounts else paths
            if "fstype" in body.get("properties", {}):
                body["properties"]["fstype"] = {"enum": ["memfs", "localfs", "nofs"]}
    return document


def fill(server):
    for folder in ("/memfs/d", "/local/d"):
        server.ask("POST", f"/api/v1/directories?path={folder}")
    for file in ("/memfs/a", "/memfs/d/b", "/local/a"):
        server.ask("PUT", f"/api/v1/files?path={file}", b"first line\nsecond line\n")


@check("http_schema.as_served")
def as_served(t):
    with Server() as server:
        document = document_of(server)
        t.equal(document.get("openapi"), "3.1.0")
        said = run(t, server, document)
        t.true("No issues found" in said, said[-500:])


@check("http_schema.with_paths_that_exist")
def with_paths_that_exist(t):
    with Server() as server:
        fill(server)
        run(t, server, narrowed(document_of(server)), "fuzzing", examples=3 * EXAMPLES, mode="positive")
        done = server.metric('ragfs_http_responses_total{class="2xx"}')
        t.true(done > 200, f"many calls did something: {done}")


@check("http_schema.tokens_are_asked_for")
def tokens_are_asked_for(t):
    """The document says who needs a token, and the server asks for it where it says so."""
    with Server("tokens_env: TOKENS", environment={"TOKENS": TOKEN}) as server:
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        t.equal(server.ask("GET", "/openapi.json")[0], 401, "nor which paths there are")
        document = document_of(server, bearer)
        t.equal(document["components"]["securitySchemes"]["bearer"]["scheme"], "bearer")
        run(t, server, document, "fuzzing", bearer.items(), examples=3)


if __name__ == "__main__":
    # The checks need the packages' Python; names are listed without it.
    if "--list" not in sys.argv and not sys.prefix.startswith(str(ROOT / "build" / "venv")):
        os.execv(venv.python(ROOT), [str(venv.python(ROOT)), *sys.argv])
    main()
