"""The command line, the settings, and starts that must fail with a clear word."""
import contextlib
import json
import os
import resource
import shutil
import socket
import subprocess

from harness import (ROOT, Client, Millrace, copy_of_template, equal, folder, note, ok, redis, run,
                     run_tests, test, wait_for)


PAGE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "configuration.md")


@test("command line")
def _():
    r = run("--help")
    equal(r.returncode, 0, "--help")
    ok("serve" in r.stdout and "config" in r.stdout and "node" not in r.stdout,
       "names the commands, but not the hidden one", r.stdout)
    r = run("--version")
    ok(r.returncode == 0 and r.stdout.startswith("millrace 0."), "--version", r.stdout)
    for command in ("serve", "config", "sim"):
        r = run(command, "--help")
        ok(r.returncode == 0 and r.stdout.startswith(f"usage: millrace {command}"),
           f"{command} --help", r.stdout, r.stderr)
    r = run("config", "--markdown")
    equal(r.stdout, open(PAGE, encoding="utf-8").read(),
          "docs/configuration.md is what config --markdown prints")
    wrong = {
        (): "a command is missing",
        ("serv",): 'unknown command "serv"; did you mean "serve"?',
        ("frobnicate",): 'unknown command "frobnicate"\n',
        ("--frobnicate",): 'unknown option "--frobnicate"',
        ("serve", "--node", "2"): 'unknown option "--node"; did you mean "--nodes"?',
        ("serve", "--nodes"): "--nodes needs a value: N",
        ("serve", "extra"): '"extra" is not expected here',
        ("config", "--check=yes"): "--check takes no value",
        ("config", "-x"): 'unknown option "-x"',
    }
    for args, text in wrong.items():
        r = run(*args)
        equal(r.returncode, 2, f"{' '.join(args) or 'nothing'}: exit status 2", r.stderr)
        ok(text in r.stderr and not r.stdout, "and why", r.stderr)
    r = run("node")
    equal((r.returncode, r.stderr), (1, 'millrace node: "node" is started by "serve" only\n'),
          "node by hand")


@test("wrong settings")
def _():
    cases = [
        ({}, (), '{"mysql": {"connections": 500}}',
         'millrace: config.json: "mysql.connections" is 500; allowed are 1 to 64\n'),
        ({}, (), '{"lisen": 1}', 'config.json: unknown key "lisen"; did you mean "listen"?\n'),
        ({}, (), '{\n "nodes": 2,\n}', "config.json, line 3, column 1: "),
        ({"MILLRACE_MYSQL_CONNECTIONS": "500"}, (), None,
         "millrace: MILLRACE_MYSQL_CONNECTIONS is 500; allowed are 1 to 64\n"),
        ({"MILLRACE_LISTN": "x"}, (), None, "did you mean MILLRACE_LISTEN?"),
        ({}, ("--nodes", "1000"), None, "millrace: --nodes is 1000; allowed are 0 to 32\n"),
        ({}, ("--listen", "nowhere"), None, '--listen is "nowhere"; expected is an address'),
        ({}, ("--config", "/nonexistent/c.json"), None,
         "/nonexistent/c.json: cannot be read: No such file or directory\n"),
        ({}, ("--config", "."), None, ".: cannot be read: Is a directory\n"),
        ({"MILLRACE_USER": "no-such-user"}, (), None,
         '"user" is "no-such-user"; there is no such system user\n'),
        ({"MILLRACE_REDIS_URL": "http://x"}, (), None, "MILLRACE_REDIS_URL is not accepted: "),
        ({"MILLRACE_VECTORS_STORE": "qdrant"}, (), None,
         "vectors.store: qdrant needs vectors.url, the address of the server\n"),
    ]
    for env, args, text, message in cases:
        cwd = folder()
        if text is not None:
            with open(f"{cwd}/config.json", "w") as f:
                f.write(text)
        r = run("serve", *args, env={"MILLRACE_DATA_DIR": f"{cwd}/v", **env}, cwd=cwd)
        equal(r.returncode, 1, f"{env or args or json.dumps(text)}: exit status 1")
        ok(message in r.stderr, "and why", r.stderr)
        ok(not os.path.exists(f"{cwd}/v/redis"), "nothing was made")


@test("unreadable settings")
def _():
    cwd = folder()
    with open(f"{cwd}/config.json", "w") as f:
        f.write("{}")
    os.chmod(f"{cwd}/config.json", 0)
    if ROOT:  # whom rights do not stop: a link to itself does
        os.remove(f"{cwd}/config.json")
        os.symlink("config.json", f"{cwd}/config.json")
    r = run("serve", cwd=cwd)
    equal(r.returncode, 1, "exit status 1")
    ok("config.json: cannot be read: " in r.stderr, "and why", r.stderr)


@test("config")
def _():
    cwd = folder()
    with open(f"{cwd}/config.json", "w") as f:
        json.dump({"mysql": {"url": "mysql://me:geheim1@host/db"}, "drain_ms": 7}, f)
    env = {"MILLRACE_REDIS_PASSWORD": "geheim2",
           "MILLRACE_AI_HEADERS": '{"X-Key": "geheim3"}'}
    r = run("config", cwd=cwd, env=env)
    equal(r.returncode, 0, "config", r.stderr)
    ok("geheim" not in r.stdout, "shows no secret", r.stdout)
    lines = {l.split()[0]: l for l in r.stdout.splitlines()}
    ok("mysql://me:***@host/db" in lines["mysql.url"] and "config.json" in lines["mysql.url"],
       "a value of the file", r.stdout)
    ok("***" in lines["redis.password"] and "MILLRACE_REDIS_PASSWORD" in lines["redis.password"],
       "a value of the environment", r.stdout)
    ok(" default " in lines["listen"], "a default", r.stdout)
    r = run("config", "--check", cwd=cwd)
    equal((r.returncode, "can be used" in r.stdout), (0, True), "--check", r.stdout)
    r = run("config", "--markdown", cwd=cwd, env={"MILLRACE_NODES": "nonsense"})
    ok(r.returncode == 0 and
       "| `http.body_bytes_max` | `MILLRACE_HTTP_BODY_BYTES_MAX` |" in r.stdout,
       "--markdown, whatever is set", r.stdout)
    r = run("config", "--check", env={"MILLRACE_NODES": "nonsense"})
    equal(r.returncode, 1, "--check of something wrong")


@test("settings reach the server")
def _():
    m = Millrace(listen=None, config=json.dumps({
        "listen": "[::1]:0", "log": {"format": "json"}, "nodes": 1, "behind_tls": True,
        "http": {"connections_max": 1000000}}),
        env={"MILLRACE_NODES": None, "MILLRACE_WEB_DIR": "pages",
             "MILLRACE_VECTORS_STORE": "qdrant", "MILLRACE_VECTORS_URL": "http://192.0.2.1:6333",
             "MILLRACE_VECTORS_API_KEY": "qd-geheim"})
    os.makedirs(f"{m.cwd}/pages")
    with open(f"{m.cwd}/pages/index.html", "w") as f:
        f.write("<p>built</p>")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        note("no IPv6 here")
        m.write_config('{"log": {"format": "json"}, "nodes": 1, "behind_tls": true, '
                       '"listen": "127.0.0.1:0", "http": {"connections_max": 1000000}}')
    with m:
        host = "::1" if "[::1]" in m.log() else "127.0.0.1"
        c = Client(m.port, host)
        r = c.request("/")
        equal((r.status, r.body), (200, b"<p>built</p>"), "pages from web_dir")
        ok("strict-transport-security" in r.headers, "behind TLS", r.headers)
        c.close()
        equal(len(m.nodes()), 1, "one node")
        for line in (m.output() + m.log()).splitlines():
            json.loads(line)
        ok(True, "every line of output and log is JSON")
        ok("vectors.api_key can be read on the way" in m.log() and "geheim" not in m.log(),
           "a key in clear: a warning", m.log())
        if int(open("/proc/sys/vm/max_map_count").read()) < 2000000:
            ok("sysctl -w vm.max_map_count=2002000" in m.log(), "too few mappings: a warning",
               m.log())
        equal(redis(m, "CONFIG", "GET", "maxmemory"), "*2", "Redis answers")


@test("data directories that cannot be used")
def _():
    def refused(name, data, text, **kw):
        m = Millrace(data=data, **kw).launch()
        equal(m.wait(30), 1, f"{name}: exit status 1", m.log())
        ok(text in m.log(), f"{name}: and why", m.log())
        ok(wait_for(lambda: not m.children("")), f"{name}: nothing runs")
        return m

    base = folder()
    with open(f"{base}/file", "w") as f:
        f.write("x")
    os.chmod(f"{base}/file", 0o644)
    refused("a file", f"{base}/file", f"{base}/file: is not a folder")
    equal(os.stat(f"{base}/file").st_mode & 0o777, 0o644, "its rights are untouched")
    refused("below a file", f"{base}/file/v", "Not a directory")
    refused("not writable", "/proc/v", "/proc/v: cannot make the data directory: ")
    os.makedirs(f"{base}/home")
    with open(f"{base}/home/letter", "w") as f:
        f.write("x")
    os.chmod(f"{base}/home", 0o755)
    refused("somebody's folder", f"{base}/home",
            "is neither empty nor a data directory of millrace")
    equal(os.stat(f"{base}/home").st_mode & 0o777, 0o755, "its rights are untouched")
    deep = base + "/" + "d" * (100 - len(base))
    refused("a long path", deep, "the path of a socket may have 107: set a shorter data_dir")
    refused("a path with a space", f"{base}/a b", "set another data_dir")


@contextlib.contextmanager
def small_disk(megabytes):
    path = folder()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


@test("full disk")
def _():
    if not ROOT:
        # No disk of our own: a limit on the size of files stands for it.
        m = Millrace(data=folder() + "/v")
        m.launch(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20)))
        equal(m.wait(60), 1, "files cannot grow: exit status 1", m.log())
        ok(m.data in m.log(), "and where", m.log())
        return
    with small_disk(30) as disk:
        m = Millrace(data=f"{disk}/v").launch()
        equal(m.wait(60), 1, "first start on a small disk: exit status 1", m.log())
        ok(f"{disk}/v: the disk is full: " in m.log(), "and where", m.log())
        equal(os.listdir(f"{disk}/v/mariadb"), ["tmp"], "no half-made database")
    with small_disk(300) as disk:
        shutil.copytree(copy_of_template(), f"{disk}/v", symlinks=True)
        os.chmod(f"{disk}/v", 0o700)
        with open(f"{disk}/ballast", "wb") as f:
            with contextlib.suppress(OSError):
                while True:
                    f.write(b"x" * (1 << 20))
        m = Millrace(data=f"{disk}/v").launch()
        equal(m.wait(60), 1, "a later start on a full disk: exit status 1", m.log())
        ok(f"{disk}/v" in m.log(), "and where", m.log())
        os.remove(f"{disk}/ballast")
        with Millrace(data=f"{disk}/v") as m:
            equal(m.get("/readyz").status, 200, "with room again it starts", m.log())


@test("no PATH")
def _():
    with Millrace(env={"PATH": folder()}) as m:
        equal(m.get("/readyz").status, 200, "servers are found without PATH", m.log())


run_tests()
