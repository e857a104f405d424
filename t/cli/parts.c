/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, times and colours as commands print them: at the limits of their forms, in
 * another place on earth, by every setting that has a say. */
#include "config.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/color.h"
#include "t/tap.h"

static void
test_numbers(void)
{
    static const struct {
        double value;
        const char *text;
    } sizes[] = {
        {0, "0 B"},          {7, "7 B"},           {7.5, "7.50 B"},
        {-7, "-7 B"},        {12.25, "12.2 B"},    {99.96, "100 B"},
        {999, "999 B"},      {999.4, "999 B"},     {999.5, "1.00 kB"},
        {1000, "1.00 kB"},   {9990, "9.99 kB"},    {9996, "10.0 kB"},
        {99940, "99.9 kB"},  {99960, "100 kB"},    {999400, "999 kB"},
        {999600, "1.00 MB"}, {-1500, "-1.50 kB"},  {2.5e9, "2.50 GB"},
        {3e12, "3.00 TB"},   {4.25e15, "4.25 PB"}, {5e18, "5000 PB"},
    };
    static const struct {
        int64_t n;
        const char *text;
    } counts[] = {
        {0, "0"},
        {999, "999"},
        {1000, "1,000"},
        {78042, "78,042"},
        {-999, "-999"},
        {-1000, "-1,000"},
        {-123456, "-123,456"},
        {1234567, "1,234,567"},
        {INT64_MAX, "9,223,372,036,854,775,807"},
        {INT64_MIN, "-9,223,372,036,854,775,808"},
    };
    char buf[40], small[6];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        is_str(cli_bytes(sizes[i].value, buf, sizeof buf), sizes[i].text, "%g bytes",
               sizes[i].value);
    is_str(cli_scaled(2500, "/s", buf, sizeof buf), "2.50 k/s", "of another unit");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        is_str(cli_count(counts[i].n, buf, sizeof buf), counts[i].text, "a count");
    is_int((int64_t)strlen(cli_count(12345678, small, sizeof small)) < 6, 1,
           "a count stays within its room");
}

static void
test_clock(void)
{
    char buf[32];
    setenv("TZ", "XYZ-5:30", 1);
    tzset();
    /* 2026-11-28 21:04:59 in Greenwich */
    is_str(cli_clock(1795899899, buf, sizeof buf), "2026-11-29 02:34",
           "a time is that of the place");
    is_str(cli_clock(0, buf, sizeof buf), "-", "0 is no time");
    is_str(cli_clock(-1, buf, sizeof buf), "-", "nor is one before");
    is_str(cli_clock(1, buf, sizeof buf), "1970-01-01 05:30", "the first is one");
    setenv("TZ", "UTC", 1);
    tzset();
}

static void
set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void
test_colors(void)
{
    enum { AUTO = ETI_COLOR_AUTO, ALWAYS = ETI_COLOR_ALWAYS, NEVER = ETI_COLOR_NEVER };
    static const struct {
        int option, file;
        const char *no, *force;
        int want;
        const char *name;
    } rows[] = {
        {AUTO, -1, NULL, NULL, AUTO, "nobody has a wish"},
        {AUTO, ALWAYS, NULL, NULL, ALWAYS, "config.yaml has one"},
        {AUTO, NEVER, NULL, NULL, NEVER, "or another"},
        {AUTO, ALWAYS, "1", NULL, NEVER, "NO_COLOR goes before it"},
        {AUTO, ALWAYS, "", NULL, ALWAYS, "an empty one says nothing"},
        {AUTO, NEVER, NULL, "1", ALWAYS, "CLICOLOR_FORCE goes before it"},
        {AUTO, NEVER, NULL, "0", NEVER, "0 is none"},
        {AUTO, NEVER, NULL, "", NEVER, "nor is an empty one"},
        {AUTO, AUTO, "1", "1", NEVER, "of both NO_COLOR goes first"},
        {ALWAYS, NEVER, "1", "0", ALWAYS, "--color goes before all"},
        {NEVER, ALWAYS, NULL, "1", NEVER, "also where it says no"},
    };
    struct eti_config config = {0};
    struct cli c = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        config.set.color = rows[i].file;
        c.config = rows[i].file < 0 ? NULL : &config;
        c.opt.color = rows[i].option;
        set("NO_COLOR", rows[i].no);
        set("CLICOLOR_FORCE", rows[i].force);
        is_int(cli_color(&c), rows[i].want, "colours: %s", rows[i].name);
    }
    set("NO_COLOR", NULL);
    set("CLICOLOR_FORCE", NULL);

    static const struct {
        int option;
        bool terminal;
        const char *term;
        bool want;
    } places[] = {
        {AUTO, true, "xterm", true},   {AUTO, true, NULL, true},
        {AUTO, true, "dumb", false},   {AUTO, false, "xterm", false},
        {ALWAYS, false, "dumb", true}, {NEVER, true, "xterm", false},
    };
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY),
              file = open("/dev/null", O_WRONLY);
    c.config = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (terminal < 0) {
            skip(1, "no terminal here");
            continue;
        }
        c.opt.color = places[i].option;
        set("TERM", places[i].term);
        is_int(cli_has_color(&c, places[i].terminal ? terminal : file), places[i].want,
               "colours %d on a %s of the kind %s", places[i].option,
               places[i].terminal ? "terminal" : "file",
               places[i].term ? places[i].term : "unknown");
    }
    close(terminal);
    close(file);
}

int
main(void)
{
    test_numbers();
    test_clock();
    test_colors();
    return done();
}
