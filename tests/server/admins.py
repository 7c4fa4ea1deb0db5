"""Admins for whole-server tests: clients that are logged in, made by hand so that no test waits for
bcrypt."""
from client import PASSWORD, Api
from harness import sql

ADMIN_PASSWORD = "battery staple"
# bcrypt of the two at cost 4, which saves a quarter of a second for each log-in
ADMIN_HASH = "$2b$04$abcdefghijklmnopqrstuuhfdSToe28Z2OzxmmHxfI3lnNDfjxoF6"
HASH = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"


class Admin(Api):
    def login(self, name, password=ADMIN_PASSWORD, headers=()):
        r = self("POST", "/api/admin/login", {"username": name, "password": password}, headers)
        if r.status == 200:
            self.token = r.body["token"]
        return r

    def me(self):
        return self("GET", "/api/admin/me")

    def audit(self, query=""):
        return self("GET", "/api/admin/audit" + query).body["actions"]


def admin(server, name, role="admin"):
    sql(server, "INSERT INTO admin_info (username, username_folded, password, role)"
                f" VALUES ('{name}', '{name.lower()}', '{ADMIN_HASH}', '{role}')")
    api = Admin(server)
    assert api.login(name).status == 200
    return api


def user(server, name):
    sql(server, "INSERT INTO user_info (username, username_folded, password, permission)"
                f" VALUES ('{name}', '{name.lower()}', '{HASH}', 1)")
    api = Api(server)
    assert api.login(name, PASSWORD).status == 200
    return api


def uid_of(api):
    return api.me().body["uid"]


def told(row):
    return (row["action"], row["outcome"])
