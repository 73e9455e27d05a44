"""Reaper: ends its child process when the program that started the reaper has ended, however that happened.

Started as a script with only the standard library. Standard input is a pipe from the starter. The words
`stop` (SIGTERM), `drain` (SIGUSR2) and `kill` on it, also several after one another, request an orderly or an
immediate end. End of file without a word means that the starter has died; then `--remove DIR` is removed too,
because no other process will do it. The open file `--descriptor N` is passed on to the child. The exit status
of a child that a signal ended is the shell's: 128 and the signal's number.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading

GRACE_SECONDS = 20


def main(arguments: list[str]) -> int:
    """`[OPTION…] -- COMMAND…`: run the command, watch standard input, return its exit status."""
    split = arguments.index("--")
    options, command = arguments[:split], arguments[split + 1 :]
    passed_on = [int(_value(options, "--descriptor"))] if "--descriptor" in options else []
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=passed_on)
    for descriptor in passed_on:
        os.close(descriptor)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    orphaned = threading.Event()
    threading.Thread(target=_watch, args=(child, orphaned), daemon=True).start()
    status = child.wait()
    if orphaned.is_set() and "--remove" in options:
        shutil.rmtree(_value(options, "--remove"), ignore_errors=True)
    return 128 - status if status < 0 else status


def _value(options: list[str], name: str) -> str:
    return options[options.index(name) + 1]


def _watch(child: "subprocess.Popen[bytes]", orphaned: threading.Event) -> None:
    asked = False
    while words := os.read(0, 16).split():
        asked = True
        _end(child, words)
    if not asked:
        orphaned.set()
        _end(child, [b"stop"])


def _end(child: "subprocess.Popen[bytes]", words: list[bytes]) -> None:
    if b"kill" in words:
        child.kill()
        return
    child.send_signal(signal.SIGUSR2 if b"drain" in words else signal.SIGTERM)
    last = threading.Timer(GRACE_SECONDS, child.kill)
    last.daemon = True
    last.start()


if __name__ == "__main__":
    # A Ctrl-C in the terminal is for the starter, which then writes a word to the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(main(sys.argv[1:]))
