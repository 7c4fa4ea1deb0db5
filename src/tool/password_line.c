#include "tool/password_line.h"

#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static bool read_line(char *line, size_t size)
{
    if (!fgets(line, (int)size, stdin))
        return false;
    size_t n = strcspn(line, "\r\n");
    bool whole = line[n] != '\0' || feof(stdin);
    line[n] = '\0';
    return whole || n < size - 1;
}

static bool ask(const char *prompt, char *line, size_t size)
{
    struct termios old, quiet;
    fprintf(stderr, "%s: ", prompt);
    bool terminal = tcgetattr(STDIN_FILENO, &old) == 0;
    quiet = old;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    if (terminal)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    bool fine = read_line(line, size);
    if (terminal)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &old);
    fprintf(stderr, "\n");
    return fine;
}

const char *password_line_read(char line[PASSWORD_LINE_BYTES])
{
    char again[PASSWORD_LINE_BYTES];
    if (!isatty(STDIN_FILENO))
        return read_line(line, PASSWORD_LINE_BYTES) ? user_password_problem(str_of(line))
                                                    : "there is no password on standard input";
    if (!ask("Password", line, PASSWORD_LINE_BYTES))
        return "no password was given";
    const char *why = user_password_problem(str_of(line));
    if (why)
        return why;
    bool same = ask("Once more", again, sizeof again) && strcmp(again, line) == 0;
    explicit_bzero(again, sizeof again);
    return same ? NULL : "the two passwords differ";
}
