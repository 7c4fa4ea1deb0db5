"""Certificates for test_peers.py: an authority, and leaves that are right or wrong in one way."""
import os
import subprocess

CONFIG = """
[ca]
default_ca = authority
[authority]
database = {dir}/index
new_certs_dir = {dir}
serial = {dir}/serial
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
[root]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
subjectKeyIdentifier = hash
[leaf]
basicConstraints = CA:FALSE
subjectAltName = {names}
"""


def openssl(*words):
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (words, done.stderr)


class Authority:
    """Its certificate is <dir>/<name>.pem. above: the one that has signed it; None: itself."""

    def __init__(self, dir_, name, above=None):
        self.dir, self.name = f"{dir_}/{name}.d", name
        os.mkdir(self.dir)
        open(f"{self.dir}/index", "w").close()
        with open(f"{self.dir}/serial", "w") as f:
            f.write("1000\n")
        self.pem, self.key = f"{dir_}/{name}.pem", f"{dir_}/{name}.key"
        if above:
            above.sign(name, self.pem, self.key, extensions="root")
        else:
            openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-subj", f"/CN={name}", "-days", "30", "-config", self.config(""),
                    "-extensions", "root", "-keyout", self.key, "-out", self.pem)

    def config(self, names):
        path = f"{self.dir}/config"
        with open(path, "w") as f:
            f.write(CONFIG.format(dir=self.dir, names=names or "DNS:none"))
        return path

    def sign(self, name, pem, key, names="DNS:localhost", extensions="leaf",
             first="20200101000000Z", last="20400101000000Z"):
        request = f"{self.dir}/{name}.csr"
        config = self.config(names)
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-config",
                config, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        openssl("ca", "-batch", "-notext", "-config", config, "-extensions", extensions, "-cert",
                self.pem, "-keyfile", self.key, "-startdate", first, "-enddate", last, "-in",
                request, "-out", pem)


def leaf(authority, name, chain=(), **how):
    """Returns the files of a certificate with its chain, and of its key."""
    base = os.path.dirname(authority.dir)
    pem, key = f"{base}/{name}.pem", f"{base}/{name}.key"
    authority.sign(name, pem, key, **how)
    for other in chain:
        with open(pem, "a") as out, open(other.pem) as more:
            out.write(more.read())
    return pem, key
