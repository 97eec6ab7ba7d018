"""Clients of runtasks --listen, for tests/suites/service.bats: service.py SCENARIO, in an empty folder.

Each scenario starts a service and checks what its clients are told. In the end no process and no
socket may be left.
"""

import os
import signal
import socket
import stat
import subprocess
import sys
import time

WORKER = os.path.join(os.environ["ROOT"], "tests", "tools", "worker.sh")
LIMIT = 30  # seconds after which a test that waits fails


def wait_until(what, condition):
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "waited in vain: " + what
        time.sleep(0.005)


class Service:
    def __init__(self, *options, status=0):
        self.status = status
        self.process = subprocess.Popen(["runtasks", "--listen", "socket", *options], stderr=open("said", "ab"),
                                        stdin=subprocess.DEVNULL, stdout=open("printed", "ab"))
        wait_until("socket", lambda: os.path.exists("socket") or self.process.poll() is not None)

    def end(self):
        """Waits for its end. All has been cleaned up."""
        got = self.process.wait(LIMIT)
        assert got == self.status, "status %d: %s" % (got, open("said").read())
        assert not os.path.exists("socket"), "the socket is left"
        assert os.path.getsize("printed") == 0
        # what a worker started was killed with its group; nobody waits for the end of that
        wait_until("end of all", lambda: not children_of(self.process.pid))


def children_of(pid):
    """Processes that its tasks and workers are: they have the name of this test in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and int(entry) != os.getpid():
                with open("/proc/%s/environ" % entry, "rb") as environ:
                    if b"SERVICE_TEST=%d\0" % os.getpid() in environ.read() and int(entry) != pid:
                        found.append(int(entry))
        except OSError:
            pass
    return found


class Client:
    def __init__(self, name=None, send=""):
        wait_until("service", self.connect)
        self.told = b""
        self.send("#rampipe\t1\n" + ("client\t%s\n" % name if name else "") + send)

    def connect(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT)
        try:
            self.socket.connect("socket")
        except OSError:  # one that was killed has left it
            self.socket.close()
            return False
        return True

    def send(self, text):
        self.socket.sendall(text.encode("latin-1"))

    def read(self):
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        self.told += data
        return data

    def until(self, *words):
        """Reads until there is a record that begins with these fields."""
        start = ("\n" + "\t".join(words)).encode()
        while start not in self.told:
            assert self.read(), "the stream ended: %s" % self.told.decode()

    def heard(self):
        """Waits until all that was sent has been taken: records that are no tasks are passed on."""
        self.send("mark\tx\n")
        self.until("mark", "x")

    def join(self):
        """Says that it has sent all; returns records, as lists of fields."""
        self.send("#end\n")
        return self.finish()

    def finish(self):
        while self.read():
            pass
        self.socket.close()
        if self.told.endswith(b"\n#end\n"):
            subprocess.run(["reccheck", "-q"], input=self.told, check=True)
        return [line.split("\t") for line in self.told.decode().splitlines() if not line.startswith("#@")]


def task(name, command, *keys, reads="-", writes="-", timeout="inf"):
    return "\t".join(["task", name, str(timeout), reads, writes, command, *keys]) + "\n"


def call(name, text, *keys, **more):
    return task(name, WORKER, "call=" + text, *keys, **more)


def ids(records, kind):
    return [r[1] for r in records if r[0] == kind]


def whole(records):
    assert records[-1] == ["#end"], records
    return records


def error(records):
    assert records[-1][0] == "error", records
    return records[-1][1]


def result(records, name):
    found = [f[7:] for r in records if r[:2] == ["attempt", name] for f in r if f.startswith("result=")]
    assert len(found) == 1, records
    return found[0]


# ---- scenarios ---------------------------------------------------------------------------


def one():
    """A client, its end, and what is there before and after."""
    service = Service()
    mode = os.stat("socket").st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600
    records = whole(Client(send=task("a", "echo hello", "stdout=x") + call("b", "result=$n") + "fence\tf\n"
                           + task("c", "cat x", reads="x", writes="-")).join())
    done = ids(records, "done")
    assert sorted(done[:2]) == ["a", "b"] and done[2:] == ["c"], done
    service.end()
    assert sorted(os.listdir(".")) == ["printed", "said", "x"]
    assert open("said").read() == ""


def two():
    """Names, results and failures are each client's own."""
    service = Service("-j", "2")
    clients = [Client() for _ in range(2)]
    for i, c in enumerate(clients):
        c.send(call("a", "result=%d" % i) + call("b", "result=$inputs", reads="@a.result")
               + call("c", "false" if i else "true") + task("d", "true", reads="@c.result"))
    for i, c in enumerate(clients):
        records = whole(c.join())
        assert result(records, "b") == "a=%d" % i
        assert sorted(ids(records, "done")) == (["a", "b", "c", "d"] if i == 0 else ["a", "b"])
        assert ids(records, "block") == ([] if i == 0 else ["c", "d"])
    service.end()
    assert open("said").read() == "", "tasks that fail are told their client alone"


def bad():
    """Input that cannot be taken: its tasks that run end, others go on."""
    service = Service("-j", "4")
    os.mkfifo("go")
    first = Client(send=task("a", "cat go") + call("z", "result=$n"))
    first.until("done", "z")
    first.send(task("a", "true") + "more\n")
    good = Client(send=call("a", "result=1"))
    assert result(whole(good.join()), "a") == "1"
    assert b"\nerror" not in first.told
    open("go", "w").close()
    records = first.finish()
    assert "a" in ids(records, "done")
    assert error(records) == "client-1:4: task 'a' comes twice"
    service.end()


def refused():
    """What is no stream of a client."""
    service = Service()
    stays = Client("stays")
    name = "the name of a client must be 1 to 64 of the characters A-Z a-z 0-9 . _ -, and must not begin with a dot"
    header = "#rampipe\t1\n"
    for i, (sent, told) in enumerate([
            (task("a", "true"), "1: a client must first send the header '#rampipe', TAB, 1, so that #end can show that its stream is complete"),
            (header + "client\t.a\n", "2: " + name),
            (header + "client\ta/b\n", "2: " + name),
            (header + "client\t%s\n" % (65 * "a"), "2: " + name),
            (header + "client\n", None),
            (header + "fence\tx\nclient\ta\n", "3: a client record may come only once, before all other records"),
            ("#rampipe\t2\n", "1: the stream is of version 2 of the format, this program reads version 1"),
            ("x\0y\n", "1: a NUL byte stands inside the line: the input is not text"),
            ("\x1f", None),
            (header + "Task\n", None),
            (header + task("a", "true", "cores=9999999"), None)]):
        c = Client.__new__(Client)
        c.socket = socket.socket(socket.AF_UNIX)
        c.socket.connect("socket")
        c.told = b""
        c.send(sent)
        c.socket.shutdown(socket.SHUT_WR)
        records = c.finish()
        if told:
            assert error(records) == "client-%d:%s" % (i + 2, told), (sent, records)
        else:
            assert records[-1] != ["#end"], (sent, records)
    same = Client("stays", task("a", "true"))
    assert error(same.finish()) == "client 'stays': another client of this name has not ended yet"
    stays.send(task("a", "true"))
    assert ids(whole(stays.join()), "done") == ["a"]
    service.end()


def orphans(what):
    """A client goes away in the middle."""
    service = Service("--orphans=" + what, "-j", "2", "--grace", "50ms")
    stays = Client(send=task("a", "true"))
    wait = "while [ ! -e go ]; do sleep 0.01; done; touch "
    dies = Client(send=task("run", "sh -c 'echo $$ >pid; %s ran'" % wait) + call("called", wait + "called")
                  + task("next", "touch later", reads="@run.stdout"))
    wait_until("pid", lambda: os.path.exists("pid") and os.path.getsize("pid"))
    dies.socket.close()
    if what == "finish":
        open("go", "w").close()
        wait_until("later", lambda: os.path.exists("later") and os.path.exists("called"))
    else:
        pid = int(open("pid").read())
        wait_until("end of the task", lambda: not os.path.exists("/proc/%d" % pid))
    stays.send(call("b", "result=$n"))
    assert ids(whole(stays.join()), "done") == ["a", "b"]
    service.end()
    assert os.path.exists("ran") == os.path.exists("later") == (what == "finish")


def joined_orphan():
    """A client that has sent all goes away: its tasks are orphans, too; the service stays for them."""
    service = Service()
    os.mkfifo("go")
    client = Client(send=task("a", "sh -c 'cat go; touch done'") + task("b", "true", reads="@a.stdout") + "#end\n")
    client.socket.close()
    assert service.process.poll() is None
    open("go", "w").close()
    service.end()
    assert os.path.exists("done")


def cut():
    """A client that says no more, without having said that this is all, is told so."""
    service = Service()
    client = Client(send=task("a", "true"))
    client.socket.shutdown(socket.SHUT_WR)
    records = client.finish()
    assert ids(records, "done") == ["a"]
    assert "the stream is cut" in error(records)
    service.end()


def slow():
    """Who does not read stops nobody."""
    service = Service("-j", "2")
    lazy = Client(send="".join(call("t%d" % i, 'printf -v result "%259999d" 0') for i in range(99)) + "#end\n")
    records = whole(Client(send=call("a", "result=1")).join())
    assert result(records, "a") == "1"
    assert whole(Client(send=task("a", "true")).join())
    records = whole(lazy.finish())
    assert sorted(ids(records, "done")) == sorted("t%d" % i for i in range(99))
    service.end()


def turns():
    """Clients take turns: who comes later does not wait for all of who came first."""
    service = Service("-j", "1")
    os.mkfifo("go")
    first = Client(send=task("hold", "cat go") + "".join(call("t%d" % i, "echo 1 >>order") for i in range(20)))
    wait_until("hold", lambda: children_of(service.process.pid))
    second = Client(send="".join(call("t%d" % i, "echo 2 >>order") for i in range(5)))
    third = Client(send=task("wide", "true"))
    for client in first, second, third:
        client.heard()
    open("go", "w").close()
    for client in second, third, first:
        whole(client.join())
    order = open("order").read().split()
    assert order[:10].count("2") == 5, order
    service.end()


def wide():
    """A task that needs all cores is not overtaken for ever by other clients."""
    service = Service("-j", "2")
    os.mkfifo("go")
    narrow = Client(send=task("hold", "cat go"))
    wait_until("hold", lambda: children_of(service.process.pid))
    wide_one = Client(send=task("wide", "sh -c 'echo wide >>order'", "cores=2"))
    wide_one.heard()
    narrow.send("".join(task("t%d" % i, "sh -c 'echo n >>order'") for i in range(12)))
    wait_until("two", lambda: os.path.exists("order") and len(open("order").read().split()) >= 2)
    time.sleep(0.05)
    assert open("order").read().split() == ["n", "n"], "as many as there are cores overtake it"
    open("go", "w").close()
    whole(wide_one.join())
    whole(narrow.join())
    assert open("order").read().split()[2] == "wide"
    service.end()


def stale():
    """A socket that nobody listens to is replaced; one in use, or another file, is not."""
    service = Service()
    client = Client(send=task("a", "sleep 60"))
    wait_until("task", lambda: children_of(service.process.pid))
    second = subprocess.run(["runtasks", "--listen", "socket"], stderr=subprocess.PIPE, text=True)
    assert second.returncode == 4
    assert second.stderr == "runtasks: socket: cannot listen: the socket is in use\n", second.stderr
    service.process.kill()
    service.process.wait()
    wait_until("end of the task", lambda: not children_of(0))
    assert ["#end"] not in client.finish()
    assert os.path.exists("socket")
    service = Service()
    whole(Client(send=task("a", "true")).join())
    service.end()
    open("socket", "w").write("mine")
    second = subprocess.run(["runtasks", "--listen", "socket"], stderr=subprocess.PIPE, text=True)
    assert second.returncode == 4
    assert second.stderr == "runtasks: socket: cannot listen: the file exists, and is not a socket\n", second.stderr
    assert open("socket").read() == "mine"
    second = subprocess.run(["runtasks", "--listen", "no/socket"], stderr=subprocess.PIPE, text=True)
    assert second.returncode == 4
    assert second.stderr == "runtasks: no/socket: cannot listen: No such file or directory\n", second.stderr


def term():
    """SIGTERM ends tasks and workers, then the service; clients see no #end."""
    service = Service("--grace", "1s", status=-signal.SIGTERM)
    client = Client(send=call("a", "result=1") + task("b", "sleep 60") + call("c", "sleep 60"))
    client.until("done", "a")
    wait_until("task", lambda: len(children_of(service.process.pid)) >= 2)
    service.process.terminate()
    assert ["#end"] not in client.finish()
    service.end()


def resume():
    """A service that is killed, and another that goes on: a log for each client."""
    service = Service("--log", "logs", "-j", "4")
    text = (task("p", "true") + call("a", "result=$$; echo >>ran", reads="@p.result")
            + call("b", "while [ ! -e go ]; do sleep 0.01; done; result=$inputs", reads="@a.result"))
    clients = [Client("one", text), Client(send=text)]
    for c in clients:
        c.until("done", "a")
    assert sorted(os.listdir("logs")) == ["client-2.log", "one.log"]
    before = [result([r.split("\t") for r in c.told.decode().splitlines()], "a") for c in clients]
    wait_until("calls", lambda: all("task\tb" in open("logs/" + n).read() for n in os.listdir("logs")))
    service.process.kill()
    service.process.wait()
    for c in clients:
        assert ["#end"] not in c.finish()
    open("go", "w").close()
    service = Service("--resume", "logs")
    stays = Client("stays")
    for name, was in [("one", before[0]), ("client-2", before[1])]:
        c = Client(name, text)
        c.heard()
        assert b"done" not in c.told
        records = whole(c.join())
        assert result(records, "a") == was
        assert result(records, "b") == "a=" + was
        assert sorted(ids(records, "done")) == ["a", "b", "p"]
    whole(Client("new", task("a", "true")).join())
    whole(stays.join())
    service.end()
    assert len(open("ran").read().split("\n")) == 3, "what had finished did not run again"
    assert open("logs/new.log").read().count("attempt\t") == 1


def logs():
    """--logs: a folder for each client. A log that cannot be written is told its client."""
    service = Service("--logs", "out", "--log", "log")
    stays = Client()
    whole(Client("x", task("a", "echo one") + call("b", "echo two")).join())
    os.mkdir("log/y.log")
    assert "log/y.log" in error(Client("y", task("a", "echo one")).finish())
    open("out/z", "w").close()
    assert "out/z" in error(Client("z", task("a", "echo one") + "#end\n").finish())
    whole(stays.join())
    service.end()
    assert open("out/x/a.stdout").read() == "one\n"
    assert open("out/x/b.stdout").read() == "two\n"
    assert "client 'y': log/y.log" in open("said").read()


def many():
    """Eight clients, tasks of all with the same names; none lost, none doubled."""
    n = int(os.environ.get("EACH", "60"))
    service = Service("-j", "2")
    clients = [Client() for _ in range(8)]
    for i, c in enumerate(clients):
        c.send("".join(call("t%d" % k, "result=%d.%d" % (i, k)) for k in range(n)) + "#end\n")
    for i, c in enumerate(clients):
        records = whole(c.finish())
        assert sorted(ids(records, "done")) == sorted("t%d" % k for k in range(n))
        for k in range(0, n, 7):
            assert result(records, "t%d" % k) == "%d.%d" % (i, k)
    service.end()


def slurm_jobs():
    """Tasks of clients as jobs (of a stand-in for Slurm, in which b fails)."""
    service = Service("--engine", "slurm-jobs")
    text = task("a", "true", writes="x") + task("b", "false", reads="x", writes="y") + task("c", "true", reads="y")
    for client in [Client(send=text), Client(send=text)]:
        records = whole(client.join())
        assert ids(records, "done") == ["a"]
        assert ids(records, "block") == ["b", "c"]
    service.end()
    assert not [name for name in os.listdir(".") if name.startswith(".runtasks")]


def main():
    os.environ["SERVICE_TEST"] = str(os.getpid())
    try:
        globals()[sys.argv[1]](*sys.argv[2:])
    finally:
        for pid in children_of(0):
            os.kill(pid, signal.SIGKILL)


main()
