#!/usr/bin/env python3
"""Writes a sample context tree: a few hundred small Markdown files laid out as OpenViking lays them out.

usage: scripts/make_sample.py DIR [--seed N]

DIR must not exist yet or be empty. The same seed writes the same bytes. Every directory has an .abstract.md (one
sentence) and an .overview.md (a page about what is below it).
"""

import argparse
import random
import sys
from pathlib import Path

ACCOUNT = "default"  # the tenant: the first component of every path
TOPICS = {
    "harbour-api": ("the HTTP interface of the Harbour booking service", {
        "guides": ["authentication", "pagination", "webhooks", "rate limits", "errors", "idempotency", "versioning"],
        "reference": ["berths", "bookings", "vessels", "tariffs", "invoices", "events", "users", "reports"],
        "tutorials": ["first booking", "changing a berth", "monthly invoices", "listening for events"]}),
    "tidepool": ("a small time-series database written for tide gauges", {
        "design": ["storage layout", "compaction", "write path", "read path", "retention", "replication"],
        "operations": ["backup", "restore", "upgrade", "disk full", "slow queries", "monitoring", "capacity"],
        "language": ["select", "window functions", "joins", "interpolation", "units"]}),
    "lantern-cli": ("the command line tool that deploys Lantern sites", {
        "commands": ["init", "build", "preview", "deploy", "rollback", "logs", "secrets", "domains", "doctor"],
        "concepts": ["sites", "environments", "builds", "previews", "caching"]}),
    "field-handbook": ("how the survey team works in the field", {
        "safety": ["weather", "first aid", "boats", "night work", "radio"],
        "equipment": ["total station", "gauges", "drones", "batteries", "transport cases", "spare parts"],
        "procedures": ["levelling a gauge", "reading a staff", "marking a point", "handing over data"]}),
}
PEOPLE = ["ada", "bruno", "chen", "dalia", "emre"]
AGENTS = {"planner": "breaks a request into steps", "librarian": "finds and files what the others need",
          "reviewer": "reads changes and asks questions"}
MEMORY_KINDS = {
    "preferences": ["editor", "language of answers", "length of answers", "code style", "working hours"],
    "entities": ["the north jetty", "gauge 14", "the billing migration", "the spring release", "the new intern"],
    "events": ["outage in March", "move to the new office", "audit", "storm week", "first customer"],
}
SKILLS = ["summarise a thread", "compare two versions", "plan a survey", "write release notes", "triage a report"]
OPENINGS = ["In short, {s} is handled in one place.", "Start here when {s} behaves differently from what you expect.",
            "{S} has three parts, and most questions concern the second.", "This page was last checked in the autumn.",
            "{S} changed in the last release; the old way still works."]
BODY = ["Set the limit first, then the deadline: the other order costs one retry.",
        "A request without a deadline waits for ever, so give it one.",
        "The default suits a few hundred items; above that, raise it in steps of two.",
        "Names are compared byte by byte, capitals included.",
        "When it fails, the message names the field, the value and what is allowed.",
        "Keep the previous copy until the new one was read back once.",
        "Both sides count from one, and the last item is included.",
        "Nothing is deleted here; old entries are marked and swept at night.",
        "Ask in the channel before touching the second machine.",
        "The numbers in the table are from one afternoon, not from a benchmark.",
        "Most of the time is spent waiting for the slowest disk.",
        "An empty answer and a missing one are different things; check which you have."]
STEPS = ["read the current value", "write the new one beside it", "compare the two", "switch over",
         "watch the log for a minute", "remove the old one", "tell whoever is on call"]


class Writer:
    def __init__(self, root: Path, seed: int):
        self.root = root
        self.random = random.Random(seed)
        self.count = 0

    def put(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text.rstrip() + "\n", encoding="utf-8")
        self.count += 1

    def pick(self, choices, count: int) -> list:
        return self.random.sample(choices, count)

    def page(self, title: str, about: str) -> str:
        opening = self.pick(OPENINGS, 1)[0].format(s=title, S=title[:1].upper() + title[1:])
        parts = [f"# {title.capitalize()}", f"{opening} It belongs to {about}.",
                 " ".join(self.pick(BODY, self.random.randint(2, 5)))]
        if self.random.random() < 0.6:
            steps = self.pick(STEPS, self.random.randint(3, 5))
            parts.append("## Steps\n" + "\n".join(f"{n}. {step}" for n, step in enumerate(steps, 1)))
        if self.random.random() < 0.4:
            rows = "\n".join(f"| {self.pick(STEPS, 1)[0]} | {self.random.randint(2, 900)} ms |" for _ in range(3))
            parts.append("## Figures\n| step | time |\n|---|---|\n" + rows)
        if self.random.random() < 0.5:
            parts.append("## Notes\n" + "\n".join(f"- {line}" for line in self.pick(BODY, self.random.randint(2, 4))))
        return "\n\n".join(parts)

    def describe(self, folder: str, about: str, children: list[str]) -> None:
        """The two files by which an agent decides whether to read on."""
        self.put(f"{folder}/.abstract.md", f"{about[:1].upper()}{about[1:]}.")
        entries = "\n".join(f"- `{child}`: {self.pick(BODY, 1)[0]}" for child in children)
        self.put(f"{folder}/.overview.md", f"# Overview\n\nThis directory holds {about}.\n\n"
                 f"{' '.join(self.pick(BODY, 2))}\n\n## What is here\n{entries}")

    def pages(self, folder: str, about: str, titles: list[str]) -> None:
        names = [title.replace(" ", "-") + ".md" for title in titles]
        for name, title in zip(names, titles):
            self.put(f"{folder}/{name}", self.page(title, about))
        self.describe(folder, about, names)


def resources(w: Writer) -> None:
    for name, (about, parts) in TOPICS.items():
        for part, titles in parts.items():
            w.pages(f"resources/{name}/{part}", f"the {part} of {about}", titles)
        w.describe(f"resources/{name}", about, list(parts))
    w.describe("resources", "documents that were added for reading", list(TOPICS))


def people(w: Writer) -> None:
    for person in PEOPLE:
        for kind, titles in MEMORY_KINDS.items():
            w.pages(f"user/{person}/memories/{kind}", f"what is remembered about {person}: {kind}", titles)
        w.put(f"user/{person}/memories/profile.md", w.page(f"{person}'s profile", f"what is remembered about {person}"))
        w.describe(f"user/{person}/memories", f"what is remembered about {person}", [*MEMORY_KINDS, "profile.md"])
        w.describe(f"user/{person}", f"the space of {person}", ["memories"])
    w.describe("user", "one space for each person", PEOPLE)


def agents(w: Writer) -> None:
    for agent, job in AGENTS.items():
        for skill in SKILLS:
            folder = f"agent/{agent}/skills/{skill.replace(' ', '-')}"
            w.put(f"{folder}/SKILL.md", w.page(skill, f"the skills of the {agent}"))
            w.describe(folder, f"how the {agent} is to {skill}", ["SKILL.md"])
        w.describe(f"agent/{agent}/skills", f"skills of the {agent}", [skill.replace(" ", "-") for skill in SKILLS])
        w.pages(f"agent/{agent}/memories/cases", f"cases that the {agent}, who {job}, has seen",
                ["a wrong unit", "two names for one thing", "a missing page", "an old link"])
        w.describe(f"agent/{agent}/memories", f"what the {agent} has learned", ["cases"])
        w.describe(f"agent/{agent}", f"the agent that {job}", ["skills", "memories"])
    w.describe("agent", "one space for each agent", list(AGENTS))


def sessions(w: Writer) -> None:
    names = []
    for number in range(1, 13):
        name = f"2026-{number:02}-{w.random.randint(10, 28)}-{w.random.randrange(16**6):06x}"
        names.append(name)
        person, agent = w.pick(PEOPLE, 1)[0], w.pick(list(AGENTS), 1)[0]
        for part in range(1, w.random.randint(2, 4) + 1):
            lines = [f"**{who}**: {line}" for line in w.pick(BODY, 4) for who in w.pick([person, agent], 1)]
            w.put(f"session/{name}/history/{part:03}.md", f"# Part {part}\n\n" + "\n\n".join(lines))
        w.describe(f"session/{name}/history", "the earlier parts of the conversation", ["001.md"])
        w.put(f"session/{name}/messages.md", f"# {person} with {agent}\n\n" + " ".join(w.pick(BODY, 3)))
        w.describe(f"session/{name}", f"a conversation between {person} and the {agent}", ["messages.md", "history"])
    w.describe("session", "conversations, newest last", names)


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes a sample context tree of Markdown files.")
    parser.add_argument("directory", type=Path, help="must not exist yet, or be empty")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other texts (default 1)")
    options = parser.parse_args()
    if options.directory.exists() and (not options.directory.is_dir() or any(options.directory.iterdir())):
        print(f"make_sample: {options.directory} is not an empty directory; nothing was changed", file=sys.stderr)
        return 1
    writer = Writer(options.directory / ACCOUNT, options.seed)
    for part in (resources, people, agents, sessions):
        part(writer)
    print(f"wrote {writer.count} files to {options.directory}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
