// What kernels take for granted on a GPU, for the compiler of the host: blocks run one after the other, the threads of
// a block as coroutines that change places at barriers. Every load and store is checked against the arrays of the launch.

#define SIMULCAST_HOST
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ucontext.h>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
// One block runs at a time.
#define __shared__ static

struct uint4 { unsigned x, y, z, w; };
struct Index { unsigned x, y, z; };
static Index threadIdx, blockIdx;

namespace shim {
struct Range { uintptr_t begin, end; bool writable; };
static Range ranges[64];
static int count;
static char wrong[256];
static const char *now = "";

inline void check(const void *p, size_t bytes, bool writes) {
    const uintptr_t at = (uintptr_t)p;
    bool inside = false;
    for (int k = 0; k < count; k++)
        inside |= at >= ranges[k].begin && at + bytes <= ranges[k].end && (!writes || ranges[k].writable);
    if ((!inside || at % bytes % 16 != 0) && wrong[0] == 0)
        snprintf(wrong, sizeof wrong, "%s: %s of %zu bytes at %s", now, writes ? "store" : "load", bytes,
                 inside ? "an address that is not aligned" : "an address of no array");
}

enum { THREADS = 256, STACK = 64 << 10 };
static ucontext_t scheduler, threads[THREADS];
static bool done[THREADS];
static char *stacks;
static const std::function<void()> *body;

static void entry() {
    const unsigned own = threadIdx.x;
    (*body)();
    done[own] = true;
    swapcontext(&threads[own], &scheduler);
}

inline void yield() {
    const Index own = threadIdx;
    swapcontext(&threads[own.x], &scheduler);
    threadIdx = own;
}

inline void run(unsigned gx, unsigned gy, bool barriers, const std::function<void()> &kernel) {
    body = &kernel;
    if (!stacks) stacks = (char *)malloc((size_t)STACK * THREADS);
    for (unsigned y = 0; y < gy; y++)
        for (unsigned x = 0; x < gx; x++) {
            blockIdx = {x, y, 0};
            if (!barriers) {
                for (unsigned t = 0; t < THREADS; t++) {
                    threadIdx = {t, 0, 0};
                    kernel();
                }
                continue;
            }
            for (unsigned t = 0; t < THREADS; t++) {
                done[t] = false;
                getcontext(&threads[t]);
                threads[t].uc_stack.ss_sp = stacks + (size_t)t * STACK;
                threads[t].uc_stack.ss_size = STACK;
                threads[t].uc_link = &scheduler;
                makecontext(&threads[t], entry, 0);
            }
            bool any = true;
            while (any) {
                any = false;
                for (unsigned t = 0; t < THREADS; t++)
                    if (!done[t]) {
                        threadIdx = {t, 0, 0};
                        blockIdx = {x, y, 0};
                        swapcontext(&scheduler, &threads[t]);
                        any |= !done[t];
                    }
            }
        }
}

static unsigned exchanged[THREADS];
}  // namespace shim

template <class T> inline T __ldg(const T *p) {
    shim::check(p, sizeof(T), false);
    T x;
    memcpy(&x, p, sizeof(T));
    return x;
}
template <class T> inline T __ldcs(const T *p) { return __ldg(p); }
template <class T> inline void __stcs(T *p, T x) {
    shim::check(p, sizeof(T), true);
    memcpy(p, &x, sizeof(T));
}
template <class T> inline void __stwb(T *p, T x) { __stcs(p, x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
inline unsigned __float_as_uint(float x) {
    unsigned y;
    memcpy(&y, &x, 4);
    return y;
}
inline float __uint_as_float(unsigned x) {
    float y;
    memcpy(&y, &x, 4);
    return y;
}
inline double __longlong_as_double(long long x) {
    double y;
    memcpy(&y, &x, 8);
    return y;
}
inline void __syncthreads() { shim::yield(); }
inline unsigned __shfl_xor_sync(unsigned, unsigned x, int mask) {
    const unsigned own = threadIdx.x;
    shim::exchanged[own] = x;
    shim::yield();
    const unsigned got = shim::exchanged[own ^ (unsigned)mask];
    shim::yield();
    return got;
}

extern "C" void shim_ranges(const shim::Range *from, int count, const char *now) {
    memcpy(shim::ranges, from, sizeof(shim::Range) * count);
    shim::count = count;
    shim::now = now;
}
extern "C" const char *shim_wrong() { return shim::wrong; }
