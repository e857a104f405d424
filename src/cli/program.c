/* SPDX-License-Identifier: Apache-2.0 */
/* program.c: the program: finds the command, runs it, ends. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/seams.h"

/* These work where the configuration is wrong. */
static bool
needs_config(const struct cli_command *m)
{
    return m->run != cli_help && m->run != cli_version && m->run != cli_config &&
           m->run != cli_completion && m->run != cli_doctor && m->run != cli_launch;
}

/* Ready to run: folder, log, help and version. */
static int
run(struct cli *c)
{
    const char *folder = c->opt.folder;
    if (folder && chdir(folder) != 0)
        return cli_fail(c, CLI_E_FOLDER, NULL, "cannot enter %s: %s", folder,
                        strerror(errno));
    if (c->opt.log_file) {
        c->log = fopen(c->opt.log_file, "ae");
        if (!c->log)
            return cli_fail(c, CLI_E_WRITE, NULL, "cannot write %s: %s",
                            c->opt.log_file, strerror(errno));
    }
    if (c->opt.help)
        return cli_help(c);
    if (c->opt.version)
        return cli_version(c);
    if (c->command && !c->command->run)
        return cli_fail(c, CLI_E_LATER, NULL, "%s: this version does not do that",
                        c->command->name);
    if (!c->command && !cli_has_screen() && !c->opt.dump_screen) {
        cli_help(c);
        return CLI_USAGE;
    }
    int code = !c->command || needs_config(c->command) ? cli_config_load(c) : CLI_OK;
    if (code != CLI_OK)
        return code;
    return c->command ? c->command->run(c) : cli_open(c);
}

/* A result that could not be written is a failure; a reader that has left is not. */
static int
finish(struct cli *c, int code)
{
    bool failed = fflush(stdout) != 0;
    int why = errno;
    if (failed && why != EPIPE && code == CLI_OK)
        code = cli_fail(c, CLI_E_WRITE, NULL, "cannot write the result: %s",
                        strerror(why));
    if (c->log)
        fclose(c->log);
    free(c->arg);
    free(c->override);
    cli_free_plugins(c);
    eti_config_free(&c->config);
    et_ctx_free(&c->cx);
    return code;
}

/* Opens /dev/null for each standard descriptor that was closed when the program began.
 * Otherwise the next file opened would get its number, and a run's log would get what
 * is printed. Each is opened the wrong way round, so that reading and writing still
 * fail. */
static void
keep_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* A file that may not grow any more (ulimit -f) is a full disk: the write says so. */
static void
fail_at_limits(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGXFSZ, &ignore, NULL);
}

int
cli_main(int argc, char **argv, const struct eti_seams *seams)
{
    keep_standard();
    fail_at_limits();
    cli_guard_memory();
    struct cli c = {
        .opt =
            {
                .log_level = -1,
                .to = -1,
                .form = -1,
                .limit = -1,
                .threads = -1,
                .rank = -1,
                .dtype = -1,
            },
    };
    c.out = stdout;
    c.err = stderr;
    if (et_ctx_new(&c.cx) != ET_OK)
        return CLI_NO_MEMORY;
    eti_ctx_set_seams(c.cx, seams);
    if (argc > 1 && strcmp(argv[1], CLI_COMPLETE) == 0)
        return finish(&c, cli_complete(&c, argc - 2, argv + 2));
    int code;
    if (cli_hidden(&c, argc, argv, &code))
        return finish(&c, code);
    code = cli_parse(&c, argc, argv);
    if (code == CLI_OK)
        code = run(&c);
    return finish(&c, code);
}
