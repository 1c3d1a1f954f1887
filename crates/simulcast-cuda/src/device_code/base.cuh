// Types, loads and stores, division by a number that is known before the launch.

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

#define FN static __device__ __forceinline__

// A number of 16 bits that is computed in f32; the bits are those in memory.
struct f16 { u16 bits; };
struct bf16 { u16 bits; };

struct c64 { f32 re, im; };
struct c128 { f64 re, im; };

// n / size = (high(n * multiplier) + n) >> shift for n below 2^31 (Granlund and Montgomery, 1994).
struct Div { u32 size, multiplier, shift; };

FN u32 quotient(u32 n, const Div &by) { return (__umulhi(n, by.multiplier) + n) >> by.shift; }

template <class T, int V> struct alignas(sizeof(T) * V) Vec { T at[V]; };

template <int BYTES> struct Word;
template <> struct Word<1> { typedef u8 type; };
template <> struct Word<2> { typedef u16 type; };
template <> struct Word<4> { typedef u32 type; };
template <> struct Word<8> { typedef u64 type; };
template <> struct Word<16> { typedef uint4 type; };

// What an element is aligned to: a pair of numbers as each of them is.
template <class T> struct Part { typedef typename Word<sizeof(T)>::type type; };
template <> struct Part<c64> { typedef u32 type; };
template <> struct Part<c128> { typedef u64 type; };

template <class A, class B> union Both {
    A a;
    B b;
};

// V elements by one instruction; `p` is aligned to them.
template <class T, int V> FN Vec<T, V> load(const T *p) {
    typedef typename Word<sizeof(T) * V>::type W;
    Both<Vec<T, V>, W> both;
    both.b = __ldg(reinterpret_cast<const W *>(p));
    return both.a;
}

// The same of elements that are read once.
template <class T, int V> FN Vec<T, V> load_once(const T *p) {
    typedef typename Word<sizeof(T) * V>::type W;
    Both<Vec<T, V>, W> both;
    both.b = __ldcs(reinterpret_cast<const W *>(p));
    return both.a;
}

// V elements by one streaming store; `p` is aligned to them.
template <class T, int V> FN void store(T *p, const Vec<T, V> &v) {
    typedef typename Word<sizeof(T) * V>::type W;
    Both<Vec<T, V>, W> both;
    both.a = v;
    __stcs(reinterpret_cast<W *>(p), both.b);
}

// The same by a store that stays in the cache: others of its line follow.
template <class T, int V> FN void keep(T *p, const Vec<T, V> &v) {
    typedef typename Word<sizeof(T) * V>::type W;
    Both<Vec<T, V>, W> both;
    both.a = v;
    __stwb(reinterpret_cast<W *>(p), both.b);
}

// An element that is written to the cache: others of its line follow.
template <class T> FN void keep_one(T *p, T x) {
    typedef typename Part<T>::type W;
    Both<T, W[sizeof(T) / sizeof(W)]> both;
    both.a = x;
    for (int k = 0; k < (int)(sizeof(T) / sizeof(W)); k++) __stwb(reinterpret_cast<W *>(p) + k, both.b[k]);
}

// One element, wherever its parts may lie: a pair of floats need not be aligned to its size.
template <class T> struct One {
    static __device__ __forceinline__ T read(const T *p) { return load<T, 1>(p).at[0]; }
    static __device__ __forceinline__ void write(T *p, T x) {
        Vec<T, 1> one;
        one.at[0] = x;
        store<T, 1>(p, one);
    }
};

template <class T, class PART> struct OnePair {
    static __device__ __forceinline__ T read(const T *p) {
        const PART *part = reinterpret_cast<const PART *>(p);
        T x = {__ldg(part), __ldg(part + 1)};
        return x;
    }
    static __device__ __forceinline__ void write(T *p, T x) {
        PART *part = reinterpret_cast<PART *>(p);
        __stcs(part, x.re);
        __stcs(part + 1, x.im);
    }
};
template <> struct One<c64> : OnePair<c64, f32> {};
template <> struct One<c128> : OnePair<c128, f64> {};

template <class T> FN T load_one(const T *p) { return One<T>::read(p); }
template <class T> FN void store_one(T *p, T x) { One<T>::write(p, x); }

// Words of vectors, and four numbers of 8 bits in a word.

template <class T, int V> union Words {
    Vec<T, V> v;
    u32 at[sizeof(T) * V < 4 ? 1 : sizeof(T) * V / 4];
};
template <class T, int V> FN u32 word(const Vec<T, V> &x, int w) {
    Words<T, V> both;
    both.v = x;
    return both.at[w];
}
FN u32 splat(u8 x) { return x * 0x01010101u; }
FN u32 splat(i8 x) { return (u8)x * 0x01010101u; }
FN u32 splat(u16 x) { return x * 0x00010001u; }
FN u32 splat(i16 x) { return (u16)x * 0x00010001u; }
FN u32 splat(f16 x) { return x.bits * 0x00010001u; }
FN u32 splat(bf16 x) { return x.bits * 0x00010001u; }
FN u32 truths(u32 x) { return (((x & 0x7f7f7f7fu) + 0x7f7f7f7fu) | x) >> 7 & 0x01010101u; }
FN u32 add_bytes(u32 a, u32 b) {
    return ((a & 0x7f7f7f7fu) + (b & 0x7f7f7f7fu)) ^ ((a ^ b) & 0x80808080u);
}
FN u32 subtract_bytes(u32 a, u32 b) {
    return ((a | 0x80808080u) - (b & 0x7f7f7f7fu)) ^ ((a ^ ~b) & 0x80808080u);
}

FN f32 f32_bits(u32 bits) { return __uint_as_float(bits); }
FN f64 f64_bits(u64 bits) { return __longlong_as_double((i64)bits); }

// The value that lane `lane ^ mask` of the warp has.
template <class T> FN T of_lane(T x, int mask) {
    const int words = (sizeof(T) + 3) / 4;
    union {
        T value;
        u32 word[words];
    } both;
    both.word[words - 1] = 0;
    both.value = x;
#pragma unroll
    for (int k = 0; k < words; k++) both.word[k] = __shfl_xor_sync(0xffffffffu, both.word[k], mask);
    return both.value;
}
