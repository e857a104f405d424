/* SPDX-License-Identifier: Apache-2.0 */
/* calls.cc: how every call begins and ends: the lock, errors, faults, counters,
 * seed. */
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.h"

thread_local bool gpusim_inside;
static thread_local cudaError_t last_error;

/* Which call fails: the FIRST of NAME from when it was set, and maybe all after it. */
struct fault {
    std::string name;
    cudaError_t code;
    long first;
    bool after;
    long calls; /* so far */
};
static std::vector<fault> &faults = *new std::vector<fault>;
static size_t take_bytes;
static long take_first, allocations;

size_t
gpusim_read_bytes(const char *text, const char **end)
{
    char *tail;
    size_t n = strtoull(text, &tail, 10);
    const char *units = "KMG", *unit = *tail ? strchr(units, *tail) : nullptr;
    if (unit)
        n <<= 10 * (unit - units + 1), tail++;
    *end = tail;
    return n;
}

static bool
set_take(const char *spec)
{
    take_bytes = 0, take_first = 0, allocations = 0;
    if (!spec || !*spec)
        return true;
    const char *end;
    size_t bytes = gpusim_read_bytes(spec, &end);
    long first = 1;
    if (end == spec || (*end && sscanf(end, "@%ld", &first) != 1))
        return false;
    take_bytes = bytes, take_first = first;
    return true;
}

static bool
set_fault(const char *spec)
{
    faults.clear();
    for (const char *p = spec ? spec : ""; *p;) {
        std::string one(p, strcspn(p, ","));
        char name[64], plus[2] = "";
        int code;
        long first = 1;
        if (sscanf(one.c_str(), "%63[A-Za-z]=%d@%ld%1[+]", name, &code, &first, plus) <
            2)
            return false;
        faults.push_back({name, (cudaError_t)code, first, *plus == '+', 0});
        p += one.size();
        p += *p == ',';
    }
    return true;
}

static void
from_environment(gpusim_state &g)
{
    const char *seed = getenv("GPUSIM_SEED");
    g.seed = seed ? strtoull(seed, nullptr, 10) : 1;
    g.draws = 0;
    if (!set_fault(getenv("GPUSIM_FAULT")))
        gpusim_die("GPUSIM_FAULT=%s is not CALL=CODE@N,...", getenv("GPUSIM_FAULT"));
    if (!set_take(getenv("GPUSIM_TAKE")))
        gpusim_die("GPUSIM_TAKE=%s is not BYTES@N", getenv("GPUSIM_TAKE"));
}

static gpusim_state *
first_state(void)
{
    gpusim_state *g = new gpusim_state;
    from_environment(*g);
    return g;
}

gpusim_state &
gpusim(void)
{
    static gpusim_state *g = first_state();
    return *g;
}

bool
gpusim_traced(void)
{
    static bool traced = getenv("GPUSIM_TRACE") != nullptr;
    return traced;
}

/* splitmix64 (Steele, Lea and Flood 2014) of seed and position. */
uint64_t
gpusim_draw(uint64_t n)
{
    gpusim_state &g = gpusim();
    uint64_t z = g.seed * 0xda942042e4dd58b5u + ++g.draws * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return n ? z % n : 0;
}

/* ---- errors ---- */

bool
gpusim_is_fatal(cudaError_t code)
{
    switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
        return true;
    default:
        return false;
    }
}

static std::string
format(const char *fmt, va_list ap)
{
    char text[1024];
    vsnprintf(text, sizeof text, fmt, ap);
    return text;
}

void
gpusim_lose(cudaError_t code, const char *fmt, ...)
{
    gpusim_state &g = gpusim();
    if (g.lost)
        return;
    va_list ap;
    va_start(ap, fmt);
    g.report = format(fmt, ap);
    va_end(ap);
    g.lost = code;
    fprintf(stderr, "gpusim: the device is lost (%s): %s\n", cudaGetErrorName(code),
            g.report.c_str());
}

void
gpusim_die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "gpusim: %s\n", format(fmt, ap).c_str());
    va_end(ap);
    /* (The state may be what is being made: no history then.) */
    static thread_local bool dying;
    if (gpusim_inside && !dying) {
        dying = true;
        for (const std::string &name : gpusim().history)
            fprintf(stderr, "gpusim:   ran: %s\n", name.c_str());
    }
    abort();
}

cudaError_t
gpusim_fault_now(const char *name)
{
    cudaError_t code = cudaSuccess;
    for (fault &f : faults)
        if (f.name == name && (++f.calls == f.first || (f.after && f.calls > f.first)))
            code = f.code;
    return code;
}

size_t
gpusim_taken(bool count_one)
{
    allocations += count_one;
    return take_first && allocations >= take_first ? take_bytes : 0;
}

cudaError_t
gpusim_call(const char *name, const std::function<cudaError_t()> &body)
{
    gpusim_state &g = gpusim();
    cudaError_t code;
    if (gpusim_inside) {
        code = cudaErrorNotPermitted;
    } else {
        std::lock_guard<std::recursive_mutex> hold(g.lock);
        cudaError_t asked = gpusim_fault_now(name);
        if (asked && gpusim_is_fatal(asked))
            gpusim_lose(asked, "%s was asked to fail so", name);
        code = g.lost ? g.lost : asked ? asked : body();
        if (g.lost)
            code = g.lost;
        if (code && gpusim_traced())
            fprintf(stderr, "gpusim: %s: %s\n", name, cudaGetErrorName(code));
    }
    if (code)
        last_error = code;
    return code;
}

struct error_text {
    cudaError_t code;
    const char *name, *text;
};
static const error_text error_texts[] = {
#define ROW(name, code, text) {name, #name, text},
    GPUSIM_ERRORS(ROW)
#undef ROW
};

const char *
cudaGetErrorName(cudaError_t error)
{
    for (const error_text &e : error_texts)
        if (e.code == error)
            return e.name;
    return "unrecognized error code";
}

const char *
cudaGetErrorString(cudaError_t error)
{
    for (const error_text &e : error_texts)
        if (e.code == error)
            return e.text;
    return "unrecognized error code";
}

static cudaError_t
lost_or(cudaError_t code)
{
    std::lock_guard<std::recursive_mutex> hold(gpusim().lock);
    return gpusim().lost ? gpusim().lost : code;
}

cudaError_t
cudaPeekAtLastError(void)
{
    return lost_or(last_error);
}

cudaError_t
cudaGetLastError(void)
{
    cudaError_t code = last_error;
    last_error = cudaSuccess;
    return lost_or(code);
}

/* ---- gpusim.h ---- */

const struct gpusim_counts *
gpusim_counts(void)
{
    static thread_local struct gpusim_counts copy;
    std::lock_guard<std::recursive_mutex> hold(gpusim().lock);
    copy = gpusim().counts;
    return &copy;
}

bool
gpusim_fault(const char *spec)
{
    std::lock_guard<std::recursive_mutex> hold(gpusim().lock);
    bool good = set_fault(spec);
    if (!good)
        faults.clear();
    return good;
}

bool
gpusim_take(const char *spec)
{
    std::lock_guard<std::recursive_mutex> hold(gpusim().lock);
    return set_take(spec);
}

void
gpusim_seed(uint64_t seed)
{
    std::lock_guard<std::recursive_mutex> hold(gpusim().lock);
    gpusim().seed = seed;
    gpusim().draws = 0;
}

const char *
gpusim_report(void)
{
    static thread_local std::string copy;
    std::lock_guard<std::recursive_mutex> hold(gpusim().lock);
    copy = gpusim().report;
    return copy.c_str();
}

template <class Set>
static void
delete_all(Set &set)
{
    for (auto handle : set)
        delete handle;
    set.clear();
}

void
gpusim_reset(void)
{
    gpusim_state &g = gpusim();
    std::lock_guard<std::recursive_mutex> hold(g.lock);
    delete_all(g.streams);
    delete_all(g.events);
    delete_all(g.graphs);
    delete_all(g.execs);
    g.captures.clear();
    g.history.clear();
    g.shared_limits.clear();
    gpusim_memory_reset();
    g.lost = cudaSuccess;
    g.report.clear();
    g.counts = {};
    last_error = cudaSuccess;
    from_environment(g);
}
