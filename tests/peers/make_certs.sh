#!/bin/sh
# Certificates for the tests, valid for 127.0.0.1, localhost and api.test: make_certs.sh DIR
#
#   ca.crt          the authority that the tests trust
#   other_ca.crt    another one
#   good            signed by ca
#   wrong_host      signed by ca, for another host
#   expired         signed by ca, no longer valid
#   self_signed     signed by nobody
set -eu
cd "$1"

authority() { # name
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
        -keyout "$1.key" -out "$1.crt" -subj "/CN=$1" -addext 'basicConstraints=critical,CA:TRUE'
}

leaf() { # name, subjectAltName, options for signing
    name=$1 san=$2
    shift 2
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
        -keyout "$name.key" -out "$name.csr" -subj "/CN=$name"
    printf 'subjectAltName=%s\n' "$san" >"$name.ext"
    openssl x509 -req -in "$name.csr" -out "$name.crt" -extfile "$name.ext" "$@"
}

here='IP:127.0.0.1,DNS:localhost,DNS:api.test'
authority ca
authority other_ca
leaf good "$here" -CA ca.crt -CAkey ca.key -CAcreateserial -days 2
leaf wrong_host 'DNS:elsewhere.test' -CA ca.crt -CAkey ca.key -CAcreateserial -days 2
leaf expired "$here" -CA ca.crt -CAkey ca.key -CAcreateserial -days -1
leaf self_signed "$here" -key self_signed.key -days 2
