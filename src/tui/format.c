/* SPDX-License-Identifier: Apache-2.0 */
/* format.c: see format.h. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/loggers/progress.h"
#include "tui/format.h"

const char *
tui_count(int64_t n, char buf[TUI_NUMBER])
{
    char digits[24];
    if (n < 0) {
        snprintf(buf, TUI_NUMBER, "-");
        return buf;
    }
    int length = snprintf(digits, sizeof digits, "%" PRId64, n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

/* "1.5e-05" as "1.5e-5", "3.9e+07" as "3.9e7". */
static void
shorten_power(char *text)
{
    char *e = strchr(text, 'e');
    if (!e)
        return;
    const bool is_small = e[1] == '-';
    char *digits = e + 1 + (e[1] == '-' || e[1] == '+');
    digits += strspn(digits, "0");
    e[1] = '-';
    memmove(e + 1 + is_small, digits, strlen(digits) + 1);
}

const char *
tui_value(double v, char buf[TUI_NUMBER])
{
    double size = fabs(v);
    if (isnan(v))
        snprintf(buf, TUI_NUMBER, "-");
    else if (isinf(v))
        snprintf(buf, TUI_NUMBER, v > 0 ? "inf" : "-inf");
    else if (size >= 999999.5 || (v != 0 && size < 0.001)) {
        snprintf(buf, TUI_NUMBER, "%.1e", v);
        shorten_power(buf);
    } else if (size >= 999.95)
        return v > 0 ? tui_count(llround(v), buf)
                     : (snprintf(buf, TUI_NUMBER, "%.0f", v), buf);
    else
        snprintf(buf, TUI_NUMBER, "%.*f",
                 size >= 99.995   ? 2
                 : size >= 9.9995 ? 3
                                  : 4,
                 v);
    char *zero = strstr(buf, "0.");
    if (zero && size < 1 && (zero == buf || zero == buf + 1)) /* .8123 and -.8123 */
        memmove(zero, zero + 1, strlen(zero));
    return buf;
}

const char *
tui_rate(double v, char buf[TUI_NUMBER])
{
    if (!isfinite(v))
        snprintf(buf, TUI_NUMBER, "-");
    else if (v >= 1e8)
        return tui_scaled(v, buf);
    else if (v >= 99.95)
        tui_count(llround(v), buf);
    else
        snprintf(buf, TUI_NUMBER, "%.*f", v >= 9.995 ? 1 : 2, v);
    return buf;
}

const char *
tui_scaled(double v, char buf[TUI_NUMBER])
{
    static const char units[] = " KMGTPE";
    int i = 0;
    if (!isfinite(v)) {
        snprintf(buf, TUI_NUMBER, "-");
        return buf;
    }
    for (; fabs(v) >= 999.5 && units[i + 1]; i++)
        v /= 1000;
    if (i == 0)
        snprintf(buf, TUI_NUMBER, "%.*f", v == floor(v) ? 0 : 1, v);
    else
        snprintf(buf, TUI_NUMBER, "%.*f%c", fabs(v) < 9.95 ? 1 : 0, v, units[i]);
    return buf;
}

const char *
tui_bytes(double bytes, char buf[TUI_NUMBER])
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    int i = 0;
    for (; bytes >= 999.5 && i < 4; i++)
        bytes /= 1000;
    snprintf(buf, TUI_NUMBER, "%.*f %s", i > 0 && bytes < 9.95 ? 1 : 0, bytes,
             units[i]);
    return buf;
}

const char *
tui_duration(double seconds, char buf[TUI_NUMBER])
{
    if (seconds > 0 && seconds < 1) { /* it would be none */
        snprintf(buf, TUI_NUMBER, "<1s");
        return buf;
    }
    return eti_duration_text(seconds, buf, TUI_NUMBER);
}

const char *
tui_span(double seconds, char buf[TUI_NUMBER])
{
    if (seconds < 0) /* somebody set the clock */
        snprintf(buf, TUI_NUMBER, "-");
    else if (seconds < 0.9995)
        snprintf(buf, TUI_NUMBER, "%.0fms", seconds * 1000);
    else if (seconds < 59.95)
        snprintf(buf, TUI_NUMBER, "%.1fs", seconds);
    else
        tui_duration(seconds < 60 ? 60 : seconds, buf); /* cut off there, not rounded */
    return buf;
}

const char *
tui_elapsed(double seconds, char buf[TUI_NUMBER])
{
    int64_t s = seconds > 0 && seconds < 1e12 ? (int64_t)seconds : 0;
    int64_t days = s / 86400;
    int at = days > 0 ? snprintf(buf, TUI_NUMBER, "%" PRId64 "d", days) : 0;
    snprintf(buf + at, (size_t)(TUI_NUMBER - at), "%02d:%02d:%02d",
             (int)(s / 3600 % 24), (int)(s / 60 % 60), (int)(s % 60));
    return buf;
}

const char *
tui_clock(double t, int digits, char buf[TUI_NUMBER])
{
    struct tm day;
    time_t seconds = (time_t)floor(t);
    buf[0] = '\0';
    if (!(t > 0) || !localtime_r(&seconds, &day)) {
        snprintf(buf, TUI_NUMBER, "--:--");
        return buf;
    }
    int at = snprintf(buf, TUI_NUMBER, "%02d:%02d", day.tm_hour, day.tm_min);
    if (digits >= 2)
        at += snprintf(buf + at, (size_t)(TUI_NUMBER - at), ":%02d", day.tm_sec);
    if (digits >= 5)
        snprintf(buf + at, (size_t)(TUI_NUMBER - at), ".%03d",
                 (int)((t - floor(t)) * 1000));
    return buf;
}

const char *
tui_day(double t, char buf[TUI_NUMBER])
{
    struct tm day;
    time_t seconds = (time_t)floor(t);
    if (!(t > 0) || !localtime_r(&seconds, &day))
        snprintf(buf, TUI_NUMBER, "--");
    else
        snprintf(buf, TUI_NUMBER, "%02d-%02d", day.tm_mon + 1, day.tm_mday);
    return buf;
}

const char *
tui_without_zeros(const char *text, char *buf, size_t size)
{
    size_t n = 0;
    for (const char *c = text; *c && n + 1 < size; c++) {
        const bool begins = c == text || strchr(" (+-", c[-1]);
        if (!(begins && c[0] == '0' && c[1] == '.' && c[2] >= '0' && c[2] <= '9'))
            buf[n++] = *c;
    }
    buf[n] = '\0';
    return buf;
}

const char *
tui_ms(double ms, char buf[TUI_NUMBER])
{
    if (isnan(ms))
        snprintf(buf, TUI_NUMBER, "-");
    else if (ms >= 9999.5)
        snprintf(buf, TUI_NUMBER, "%.1fs", ms / 1000);
    else if (ms >= 999.5)
        snprintf(buf, TUI_NUMBER, "%.2fs", ms / 1000);
    else if (ms >= 9.95)
        snprintf(buf, TUI_NUMBER, "%.0fms", ms);
    else
        snprintf(buf, TUI_NUMBER, "%.1fms", ms);
    return buf;
}
