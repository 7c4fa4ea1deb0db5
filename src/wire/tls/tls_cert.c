/* A certificate and its key, from PEM files. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wire/tls/tls_private.h"

/* OpenSSL's own words for a missing file are of no help. */
bool tls_readable(const char *what, const char *path, char *problem)
{
    char byte;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, &byte, 1);
    if (n < 0)
        snprintf(problem, TLS_PROBLEM_BYTES, "%s %s cannot be read: %s", what, path,
                 strerror(errno));
    else if (n == 0)
        snprintf(problem, TLS_PROBLEM_BYTES, "%s %s is empty", what, path);
    if (fd >= 0)
        close(fd);
    return n > 0;
}

/* A key with a password is refused: OpenSSL would ask for it on the terminal. */
static int no_password(char *out, int size, int writing, void *arg)
{
    (void)out, (void)size, (void)writing, (void)arg;
    return -1;
}

static bool use_key(SSL_CTX *c, const char *cert_file, const char *key_file, char *problem)
{
    if (SSL_CTX_use_PrivateKey_file(c, key_file, SSL_FILETYPE_PEM) == 1 &&
        SSL_CTX_check_private_key(c) == 1)
        return true;
    unsigned long e = ERR_peek_last_error();
    bool stranger = ERR_GET_LIB(e) == ERR_LIB_X509 ||
                    (ERR_GET_LIB(e) == ERR_LIB_SSL &&
                     ERR_GET_REASON(e) == SSL_R_NO_CERTIFICATE_ASSIGNED); /* of another kind */
    if (stranger)
        snprintf(problem, TLS_PROBLEM_BYTES,
                 "the key file %s cannot be used: its key is not that of the certificate %s",
                 key_file, cert_file);
    else
        snprintf(problem, TLS_PROBLEM_BYTES,
                 "the key file %s cannot be used: it must hold a private key in PEM, without a "
                 "password: %s",
                 key_file, tls_last_error());
    return false;
}

bool tls_use_cert(SSL_CTX *c, const char *cert_file, const char *key_file, char *problem)
{
    if (!key_file)
        key_file = cert_file;
    if (!tls_readable("the certificate", cert_file, problem) ||
        !tls_readable("the key file", key_file, problem))
        return false;
    SSL_CTX_set_default_passwd_cb(c, no_password);
    ERR_clear_error();
    bool fine = SSL_CTX_use_certificate_chain_file(c, cert_file) == 1;
    if (!fine)
        snprintf(problem, TLS_PROBLEM_BYTES, "the certificate %s cannot be used: %s", cert_file,
                 tls_last_error());
    fine = fine && use_key(c, cert_file, key_file, problem);
    if (fine)
        tls_pause_to_sign(c);
    ERR_clear_error();
    return fine;
}
