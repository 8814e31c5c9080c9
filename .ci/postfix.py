"""Helper of .ci/postfix: makes the permits, and compares what Postfix delivered with the database."""

import csv
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import time

COUNT = 500


def permits(path):
    with open(path, "w", newline="", encoding="utf-8") as out:
        rows = csv.writer(out)
        rows.writerow(["permit_number", "permit_type", "holder_name", "holder_email", "site_address", "expires_on"])
        for i in range(COUNT):
            name = ["José García", "Blue Door Bakery", "Nguyễn Świątek", "O'Hare & Sons \"Pharmacy\"", ".dot"][i % 5]
            address = f"holder{i}@post.example"
            rows.writerow([f"{i:05}", "Limited Business License", name, address, f"{i} Elm St", "2026-07-01"])


def recorded(work):
    """Message-ID to hash, of every accepted attempt."""
    folders = (work / "data/postgres/lock").read_text().splitlines()
    socket = next(folder for folder in folders if pathlib.Path(folder, ".s.PGSQL.5432").exists())
    query = """SELECT d.message_id, encode(a.payload_sha256, 'hex') FROM attempts a JOIN deliveries d ON d.id = a.delivery_id
               WHERE a.outcome = 'accepted' AND a.smtp_code = 250"""
    command = ["psql", "-X", "-A", "-t", "-F", "\t", "-h", socket, "-U", "permits", "-d", "permits", "-c", query]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(line.split("\t") for line in lines)


def original(content):
    """The bytes as they were handed over: Postfix put its own headers before them, and keeps LF line ends."""
    start = re.search(rb"^(?!Return-Path:|X-Original-To:|Delivered-To:|Received:|[ \t])", content, re.MULTILINE).start()
    return content[start:].replace(b"\n", b"\r\n")


def check(work):
    report = json.loads((work / "dispatch.json").read_text())
    assert report["transport"] == "ok" and report["accepted"] == COUNT, report
    for _ in range(600):
        files = list((work / "mail/inbox/new").glob("*"))
        if len(files) >= COUNT:
            break
        time.sleep(0.1)
    known = recorded(work)
    assert len(files) == COUNT and len(known) == COUNT, (len(files), len(known))
    seen = set()
    for file in files:
        content = original(file.read_bytes())
        message_id = re.search(rb"^Message-ID: (<[^>]+>)", content, re.MULTILINE).group(1).decode()
        assert message_id not in seen, f"{message_id} was delivered twice"
        seen.add(message_id)
        assert known[message_id] == hashlib.sha256(content).hexdigest(), f"{message_id} differs from its hash"
    print(f"{len(seen)} messages, each once, Message-IDs and hashes equal")


if __name__ == "__main__":
    {"permits": permits, "check": lambda work: check(pathlib.Path(work))}[sys.argv[1]](sys.argv[2])
