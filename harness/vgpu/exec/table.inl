// SPDX-License-Identifier: Apache-2.0
// The instruction table: one row is one instruction (opcode, type, modifiers). Loads and stores appear by state space
// and size; the decoder maps their types, cache hints and vector widths onto these rows.

// Laid out by hand: a row a line.
// clang-format off
// NOLINTBEGIN(bugprone-macro-parentheses): types and templates as arguments

#define ROW(name, format, flags, ...) \
    {name, format, &__VA_ARGS__::template run<false>, &__VA_ARGS__::template run<true>, flags}

// ---- integers ------------------------------------------------------------------------------------------------------
#define INT_16_32_64(op, F)                                                                            \
    ROW(op ".u16", "h=hh", kPlain, Map2<F, u16, u16>), ROW(op ".s16", "h=hh", kPlain, Map2<F, s16, s16>), \
        ROW(op ".u32", "w=ww", kPlain, Map2<F, u32, u32>), ROW(op ".s32", "w=ww", kPlain, Map2<F, s32, s32>), \
        ROW(op ".u64", "d=dd", kPlain, Map2<F, u64, u64>), ROW(op ".s64", "d=dd", kPlain, Map2<F, s64, s64>)
#define MAD_16_32_64(op, F)                                                                            \
    ROW(op ".u16", "h=hhh", kPlain, Map3<F, u16, u16>), ROW(op ".s16", "h=hhh", kPlain, Map3<F, s16, s16>), \
        ROW(op ".u32", "w=www", kPlain, Map3<F, u32, u32>), ROW(op ".s32", "w=www", kPlain, Map3<F, s32, s32>), \
        ROW(op ".u64", "d=ddd", kPlain, Map3<F, u64, u64>), ROW(op ".s64", "d=ddd", kPlain, Map3<F, s64, s64>)
#define SIGNED_16_32_64(op, F)                                                                       \
    ROW(op ".s16", "h=h", kPlain, Map1<F, s16, s16>), ROW(op ".s32", "w=w", kPlain, Map1<F, s32, s32>), \
        ROW(op ".s64", "d=d", kPlain, Map1<F, s64, s64>)
#define BITS2(op, F)                                                                                       \
    ROW(op ".pred", "p=pp", kPlain, Predicate2<F>), ROW(op ".b16", "H=HH", kPlain, Map2<F, u16, u16>),     \
        ROW(op ".b32", "W=WW", kPlain, Map2<F, u32, u32>), ROW(op ".b64", "D=DD", kPlain, Map2<F, u64, u64>)
#define SHIFT_RIGHT(type, format, T) ROW("shr." type, format, kPlain, Map2<ShiftRight, T, T, u32>)
#define COMPARE_INT(op, type, format, F, T) ROW("setp." op "." type, format, kPlain, Compare<F, T>)
#define COMPARE_SIGNED_ORDER(op, unsigned_op, F)                                                          \
    COMPARE_INT(op, "s16", "p=hh", F, s16), COMPARE_INT(op, "s32", "p=ww", F, s32),                       \
        COMPARE_INT(op, "s64", "p=dd", F, s64), COMPARE_INT(op, "u16", "p=hh", F, u16),                   \
        COMPARE_INT(op, "u32", "p=ww", F, u32), COMPARE_INT(op, "u64", "p=dd", F, u64),                   \
        COMPARE_INT(unsigned_op, "u16", "p=hh", F, u16), COMPARE_INT(unsigned_op, "u32", "p=ww", F, u32), \
        COMPARE_INT(unsigned_op, "u64", "p=dd", F, u64)
#define COMPARE_EQUALITY(op, F)                                                                       \
    COMPARE_INT(op, "b16", "p=HH", F, u16), COMPARE_INT(op, "u16", "p=hh", F, u16),                   \
        COMPARE_INT(op, "s16", "p=hh", F, s16), COMPARE_INT(op, "b32", "p=WW", F, u32),               \
        COMPARE_INT(op, "u32", "p=ww", F, u32), COMPARE_INT(op, "s32", "p=ww", F, s32),               \
        COMPARE_INT(op, "b64", "p=DD", F, u64), COMPARE_INT(op, "u64", "p=dd", F, u64),               \
        COMPARE_INT(op, "s64", "p=dd", F, s64)

static const Row kIntegerRows[] = {
    INT_16_32_64("add", IntAdd),
    INT_16_32_64("sub", IntSubtract),
    INT_16_32_64("mul.lo", MultiplyLow),
    INT_16_32_64("mul.hi", MultiplyHigh),
    INT_16_32_64("div", IntDivide),
    INT_16_32_64("rem", IntRemainder),
    INT_16_32_64("min", IntMinimum),
    INT_16_32_64("max", IntMaximum),
    MAD_16_32_64("mad.lo", MadLow),
    MAD_16_32_64("mad.hi", MadHigh),
    SIGNED_16_32_64("abs", IntAbsolute),
    SIGNED_16_32_64("neg", IntNegate),
    ROW("add.sat.s32", "w=ww", kPlain, Map2<IntAddSaturated, s32, s32>),
    ROW("sub.sat.s32", "w=ww", kPlain, Map2<IntSubtractSaturated, s32, s32>),
    ROW("mul.wide.u16", "w=hh", kPlain, Map2<MultiplyWide, u32, u16>),
    ROW("mul.wide.s16", "w=hh", kPlain, Map2<MultiplyWide, s32, s16>),
    ROW("mul.wide.u32", "d=ww", kPlain, Map2<MultiplyWide, u64, u32>),
    ROW("mul.wide.s32", "d=ww", kPlain, Map2<MultiplyWide, s64, s32>),
    ROW("mad.wide.u16", "w=hhw", kPlain, Map3<MadWide, u32, u16, u16, u32>),
    ROW("mad.wide.s16", "w=hhw", kPlain, Map3<MadWide, s32, s16, s16, s32>),
    ROW("mad.wide.u32", "d=wwd", kPlain, Map3<MadWide, u64, u32, u32, u64>),
    ROW("mad.wide.s32", "d=wwd", kPlain, Map3<MadWide, s64, s32, s32, s64>),
    BITS2("and", BitAnd),
    BITS2("or", BitOr),
    BITS2("xor", BitXor),
    ROW("not.pred", "p=p", kPlain, Predicate1<BitNot>),
    ROW("not.b16", "H=H", kPlain, Map1<BitNot, u16, u16>),
    ROW("not.b32", "W=W", kPlain, Map1<BitNot, u32, u32>),
    ROW("not.b64", "D=D", kPlain, Map1<BitNot, u64, u64>),
    ROW("cnot.b16", "H=H", kPlain, Map1<LogicalNot, u16, u16>),
    ROW("cnot.b32", "W=W", kPlain, Map1<LogicalNot, u32, u32>),
    ROW("cnot.b64", "D=D", kPlain, Map1<LogicalNot, u64, u64>),
    ROW("shl.b16", "H=Hw", kPlain, Map2<ShiftLeft, u16, u16, u32>),
    ROW("shl.b32", "W=Ww", kPlain, Map2<ShiftLeft, u32, u32, u32>),
    ROW("shl.b64", "D=Dw", kPlain, Map2<ShiftLeft, u64, u64, u32>),
    SHIFT_RIGHT("b16", "H=Hw", u16),
    SHIFT_RIGHT("u16", "h=hw", u16),
    SHIFT_RIGHT("s16", "h=hw", s16),
    SHIFT_RIGHT("b32", "W=Ww", u32),
    SHIFT_RIGHT("u32", "w=ww", u32),
    SHIFT_RIGHT("s32", "w=ww", s32),
    SHIFT_RIGHT("b64", "D=Dw", u64),
    SHIFT_RIGHT("u64", "d=dw", u64),
    SHIFT_RIGHT("s64", "d=dw", s64),
    ROW("shf.l.wrap.b32", "W=WWw", kPlain, Map3<FunnelShift<true, false>, u32, u32>),
    ROW("shf.l.clamp.b32", "W=WWw", kPlain, Map3<FunnelShift<true, true>, u32, u32>),
    ROW("shf.r.wrap.b32", "W=WWw", kPlain, Map3<FunnelShift<false, false>, u32, u32>),
    ROW("shf.r.clamp.b32", "W=WWw", kPlain, Map3<FunnelShift<false, true>, u32, u32>),
    ROW("popc.b32", "w=W", kPlain, Map1<PopulationCount, u32, u32>),
    ROW("popc.b64", "w=D", kPlain, Map1<PopulationCount, u32, u64>),
    ROW("clz.b32", "w=W", kPlain, Map1<CountLeadingZeros, u32, u32>),
    ROW("clz.b64", "w=D", kPlain, Map1<CountLeadingZeros, u32, u64>),
    ROW("bfind.u32", "w=w", kPlain, Map1<FindBit, u32, u32>),
    ROW("bfind.s32", "w=w", kPlain, Map1<FindBit, u32, s32>),
    ROW("bfind.u64", "w=d", kPlain, Map1<FindBit, u32, u64>),
    ROW("bfind.s64", "w=d", kPlain, Map1<FindBit, u32, s64>),
    ROW("brev.b32", "W=W", kPlain, Map1<BitReverse, u32, u32>),
    ROW("brev.b64", "D=D", kPlain, Map1<BitReverse, u64, u64>),
    ROW("bfe.u32", "w=www", kPlain, Map3<BitFieldExtract, u32, u32, u32, u32>),
    ROW("bfe.s32", "w=www", kPlain, Map3<BitFieldExtract, s32, s32, u32, u32>),
    ROW("bfe.u64", "d=dww", kPlain, Map3<BitFieldExtract, u64, u64, u32, u32>),
    ROW("bfe.s64", "d=dww", kPlain, Map3<BitFieldExtract, s64, s64, u32, u32>),
    ROW("bfi.b32", "W=WWww", kPlain, Map4<BitFieldInsert, u32, u32>),
    ROW("bfi.b64", "D=DDww", kPlain, Map4<BitFieldInsert, u64, u32>),
    ROW("lop3.b32", "W=WWWw", kPlain, Map4<Logic3, u32, u32>),
    ROW("prmt.b32", "W=WWW", kPlain, Map3<Permute, u32, u32>),
    COMPARE_EQUALITY("eq", IntEqual),
    COMPARE_EQUALITY("ne", IntNotEqual),
    COMPARE_SIGNED_ORDER("lt", "lo", IntLess),
    COMPARE_SIGNED_ORDER("le", "ls", IntLessEqual),
    COMPARE_SIGNED_ORDER("gt", "hi", IntGreater),
    COMPARE_SIGNED_ORDER("ge", "hs", IntGreaterEqual),
};

// ---- moves and selections ------------------------------------------------------------------------------------------
#define MOVE(type, format, T) ROW("mov." type, format, kMove, Map1<Identity, T, T>)
#define SELECT(type, format, T) ROW("selp." type, format, kPlain, Select<T>)

static const Row kMoveRows[] = {
    ROW("mov.pred", "p=p", kPlain, Predicate1<Identity>),
    MOVE("b16", "H=H", u16),
    MOVE("u16", "h=h", u16),
    MOVE("s16", "h=h", u16),
    MOVE("b32", "W=W", u32),
    MOVE("u32", "w=w", u32),
    MOVE("s32", "w=w", u32),
    MOVE("f32", "f=f", u32),
    MOVE("b64", "D=D", u64),
    MOVE("u64", "d=d", u64),
    MOVE("s64", "d=d", u64),
    MOVE("f64", "g=g", u64),
    SELECT("b16", "H=HHp", u16),
    SELECT("u16", "h=hhp", u16),
    SELECT("s16", "h=hhp", u16),
    SELECT("b32", "W=WWp", u32),
    SELECT("u32", "w=wwp", u32),
    SELECT("s32", "w=wwp", u32),
    SELECT("f32", "f=ffp", u32),
    SELECT("b64", "D=DDp", u64),
    SELECT("u64", "d=ddp", u64),
    SELECT("s64", "d=ddp", u64),
    SELECT("f64", "g=ggp", u64),
    // Generic addresses of global memory and constants are the addresses themselves.
    ROW("cvta.global.u64", "d=d", kMove, Map1<Identity, u64, u64>),
    ROW("cvta.to.global.u64", "d=d", kMove, Map1<Identity, u64, u64>),
    ROW("cvta.const.u64", "d=d", kMove, Map1<Identity, u64, u64>),
    ROW("cvta.to.const.u64", "d=d", kMove, Map1<Identity, u64, u64>),
    ROW("cvta.shared.u64", "d=d", kPlain, Map1<SharedToGeneric, u64, u64>),
    ROW("cvta.to.shared.u64", "d=d", kPlain, Map1<GenericToShared, u64, u64>),
    // From these the decoder builds vector moves, wide registers and predicates of two parts.
    ROW("%pack.b32", "W=HH", kInternal, Map2<PackHalves, u32, u16>),
    ROW("%pack.b64", "D=WW", kInternal, Map2<PackWords, u64, u32>),
    ROW("%low.b32", "H=W", kInternal, Map1<CastTo<u16>, u16, u32>),
    ROW("%high.b32", "H=W", kInternal, Map1<HighHalf, u16, u32>),
    ROW("%low.b64", "W=D", kInternal, Map1<CastTo<u32>, u32, u64>),
    ROW("%high.b64", "W=D", kInternal, Map1<HighWord, u32, u64>),
    ROW("%widen.u32", "D=W", kInternal, Map1<CastTo<u64>, u64, u32>),
    ROW("%widen.s32", "D=W", kInternal, Map1<CastTo<s64>, s64, s32>),
    ROW("%pred.true", "p=", kInternal, PredicateSet<kFullMask>),
    ROW("%pred.false", "p=", kInternal, PredicateSet<0>),
    // Order of memory accesses: the machine performs them one after the other.
    ROW("membar.cta", "=", kPlain, Nothing),
    ROW("membar.gl", "=", kPlain, Nothing),
    ROW("membar.sys", "=", kPlain, Nothing),
    ROW("fence.acq_rel.cta", "=", kPlain, Nothing),
    ROW("fence.acq_rel.gpu", "=", kPlain, Nothing),
    ROW("fence.acq_rel.sys", "=", kPlain, Nothing),
    ROW("fence.sc.cta", "=", kPlain, Nothing),
    ROW("fence.sc.gpu", "=", kPlain, Nothing),
    ROW("fence.sc.sys", "=", kPlain, Nothing),
    ROW("nanosleep.u32", "=w", kPlain, Nothing),
};

// ---- floats --------------------------------------------------------------------------------------------------------
#define FLAGS_OF(flag, rounding) ((rounding)[0] == 0 ? (flag) : kPlain)
#define F32_VARIANTS(op, rounding, format, flag, Shape, F)                                                  \
    ROW(op rounding ".f32", format, FLAGS_OF(flag, rounding), Shape<F<false, false>, float, float>),           \
        ROW(op rounding ".ftz.f32", format, FLAGS_OF(flag, rounding), Shape<F<true, false>, float, float>),    \
        ROW(op rounding ".sat.f32", format, FLAGS_OF(flag, rounding), Shape<F<false, true>, float, float>),    \
        ROW(op rounding ".ftz.sat.f32", format, FLAGS_OF(flag, rounding), Shape<F<true, true>, float, float>)
#define F64_ROUNDED(op, rounding, format, flag, Shape, F) \
    ROW(op rounding ".f64", format, FLAGS_OF(flag, rounding), Shape<F<false, false>, double, double>)
#define FTZ_PAIR(op, format, Shape, F)                               \
    ROW(op ".f32", format, kPlain, Shape<F<false>, float, float>), \
        ROW(op ".ftz.f32", format, kPlain, Shape<F<true>, float, float>)
#define EXTREMUM(op, maximum)                                                                              \
    ROW(op ".f32", "f=ff", kPlain, Map2<Extremum<maximum, false, false>, float, float>),                   \
        ROW(op ".ftz.f32", "f=ff", kPlain, Map2<Extremum<maximum, false, true>, float, float>),            \
        ROW(op ".NaN.f32", "f=ff", kPlain, Map2<Extremum<maximum, true, false>, float, float>),            \
        ROW(op ".ftz.NaN.f32", "f=ff", kPlain, Map2<Extremum<maximum, true, true>, float, float>),         \
        ROW(op ".f64", "g=gg", kPlain, Map2<Extremum<maximum, false, false>, double, double>)
#define COMPARE_FLOAT(op, ...)                                                                    \
    ROW("setp." op ".f32", "p=ff", kPlain, Compare<__VA_ARGS__, false>, float>),                  \
        ROW("setp." op ".ftz.f32", "p=ff", kPlain, Compare<__VA_ARGS__, true>, float>),           \
        ROW("setp." op ".f64", "p=gg", kPlain, Compare<__VA_ARGS__, false>, double>)
#define COMPARE_NAN(op, F)                                                    \
    ROW("setp." op ".f32", "p=ff", kPlain, Compare<F, float>),                \
        ROW("setp." op ".ftz.f32", "p=ff", kPlain, Compare<F, float>),        \
        ROW("setp." op ".f64", "p=gg", kPlain, Compare<F, double>)
#define TESTP(op, F) \
    ROW("testp." op ".f32", "p=f", kPlain, Test<F, float>), ROW("testp." op ".f64", "p=g", kPlain, Test<F, double>)

static const Row kFloatRows[] = {
    F32_VARIANTS("add", "", "f=ff", kSum, Map2, Add),
    F32_VARIANTS("add", ".rn", "f=ff", kSum, Map2, Add),
    F32_VARIANTS("sub", "", "f=ff", kDifference, Map2, Subtract),
    F32_VARIANTS("sub", ".rn", "f=ff", kDifference, Map2, Subtract),
    F32_VARIANTS("mul", "", "f=ff", kProduct, Map2, Multiply),
    F32_VARIANTS("mul", ".rn", "f=ff", kProduct, Map2, Multiply),
    F32_VARIANTS("fma", ".rn", "f=fff", kPlain, Map3, Fma),
    F32_VARIANTS("mad", ".rn", "f=fff", kPlain, Map3, Fma),
    F64_ROUNDED("add", "", "g=gg", kSum, Map2, Add),
    F64_ROUNDED("add", ".rn", "g=gg", kSum, Map2, Add),
    F64_ROUNDED("sub", "", "g=gg", kDifference, Map2, Subtract),
    F64_ROUNDED("sub", ".rn", "g=gg", kDifference, Map2, Subtract),
    F64_ROUNDED("mul", "", "g=gg", kProduct, Map2, Multiply),
    F64_ROUNDED("mul", ".rn", "g=gg", kProduct, Map2, Multiply),
    F64_ROUNDED("fma", ".rn", "g=ggg", kPlain, Map3, Fma),
    F64_ROUNDED("mad", ".rn", "g=ggg", kPlain, Map3, Fma),
    ROW("div.rn.f32", "f=ff", kPlain, Map2<Divide<false>, float, float>),
    ROW("div.rn.ftz.f32", "f=ff", kPlain, Map2<Divide<true>, float, float>),
    ROW("div.rn.f64", "g=gg", kPlain, Map2<Divide<false>, double, double>),
    ROW("rcp.rn.f32", "f=f", kPlain, Map1<Reciprocal<false>, float, float>),
    ROW("rcp.rn.ftz.f32", "f=f", kPlain, Map1<Reciprocal<true>, float, float>),
    ROW("rcp.rn.f64", "g=g", kPlain, Map1<Reciprocal<false>, double, double>),
    ROW("sqrt.rn.f32", "f=f", kPlain, Map1<SquareRoot<false>, float, float>),
    ROW("sqrt.rn.ftz.f32", "f=f", kPlain, Map1<SquareRoot<true>, float, float>),
    ROW("sqrt.rn.f64", "g=g", kPlain, Map1<SquareRoot<false>, double, double>),
    EXTREMUM("min", false),
    EXTREMUM("max", true),
    ROW("abs.f32", "f=f", kPlain, Map1<AbsoluteFloat, float, float>),
    ROW("abs.ftz.f32", "f=f", kPlain, Map1<Flushed<AbsoluteFloat>, float, float>),
    ROW("abs.f64", "g=g", kPlain, Map1<AbsoluteFloat, double, double>),
    ROW("neg.f32", "f=f", kPlain, Map1<NegateFloat, float, float>),
    ROW("neg.ftz.f32", "f=f", kPlain, Map1<Flushed<NegateFloat>, float, float>),
    ROW("neg.f64", "g=g", kPlain, Map1<NegateFloat, double, double>),
    ROW("copysign.f32", "f=ff", kPlain, Map2<CopySign, float, float>),
    ROW("copysign.f64", "g=gg", kPlain, Map2<CopySign, double, double>),
    COMPARE_FLOAT("eq", FloatEqual<false),
    COMPARE_FLOAT("ne", FloatNotEqual<false),
    COMPARE_FLOAT("lt", FloatLess<false),
    COMPARE_FLOAT("le", FloatLessEqual<false),
    COMPARE_FLOAT("gt", FloatGreater<false),
    COMPARE_FLOAT("ge", FloatGreaterEqual<false),
    COMPARE_FLOAT("equ", FloatEqual<true),
    COMPARE_FLOAT("neu", FloatNotEqual<true),
    COMPARE_FLOAT("ltu", FloatLess<true),
    COMPARE_FLOAT("leu", FloatLessEqual<true),
    COMPARE_FLOAT("gtu", FloatGreater<true),
    COMPARE_FLOAT("geu", FloatGreaterEqual<true),
    COMPARE_NAN("num", BothNumbers),
    COMPARE_NAN("nan", AnyNan),
    TESTP("finite", IsFinite),
    TESTP("infinite", IsInfinite),
    TESTP("number", IsNumber),
    TESTP("notanumber", IsNotANumber),
    TESTP("normal", IsNormal),
    TESTP("subnormal", IsSubnormal),
};

// ---- conversions ---------------------------------------------------------------------------------------------------
// A register wider than the type is legal on either side (~).
#define CVT_INT(dtype, D, stype, S, format) ROW("cvt." dtype "." stype, "~" format, kPlain, Map1<CastTo<D>, D, S>)
#define CVT_INT_SAT(dtype, D, stype, S, format) \
    ROW("cvt.sat." dtype "." stype, "~" format, kPlain, Map1<CastSaturated<D>, D, S>)
#define CVT_FROM_ALL_INT(MACRO, dtype, D, dl)                                                                 \
    MACRO(dtype, D, "u8", u8, dl "=b"), MACRO(dtype, D, "s8", s8, dl "=b"), MACRO(dtype, D, "u16", u16, dl "=h"), \
        MACRO(dtype, D, "s16", s16, dl "=h"), MACRO(dtype, D, "u32", u32, dl "=w"),                           \
        MACRO(dtype, D, "s32", s32, dl "=w"), MACRO(dtype, D, "u64", u64, dl "=d"), MACRO(dtype, D, "s64", s64, dl "=d")
#define CVT_ALL_INT(MACRO)                                                                            \
    CVT_FROM_ALL_INT(MACRO, "u8", u8, "b"), CVT_FROM_ALL_INT(MACRO, "s8", s8, "b"),                   \
        CVT_FROM_ALL_INT(MACRO, "u16", u16, "h"), CVT_FROM_ALL_INT(MACRO, "s16", s16, "h"),           \
        CVT_FROM_ALL_INT(MACRO, "u32", u32, "w"), CVT_FROM_ALL_INT(MACRO, "s32", s32, "w"),           \
        CVT_FROM_ALL_INT(MACRO, "u64", u64, "d"), CVT_FROM_ALL_INT(MACRO, "s64", s64, "d")
#define SAT_FROM_32_64(dtype, D, dl)                                                                        \
    CVT_INT_SAT(dtype, D, "u32", u32, dl "=w"), CVT_INT_SAT(dtype, D, "s32", s32, dl "=w"),                 \
        CVT_INT_SAT(dtype, D, "u64", u64, dl "=d"), CVT_INT_SAT(dtype, D, "s64", s64, dl "=d")
#define SAT_FROM_WIDE(dtype, D, dl)                                                         \
    CVT_INT_SAT(dtype, D, "u16", u16, dl "=h"), CVT_INT_SAT(dtype, D, "s16", s16, dl "=h"), \
        SAT_FROM_32_64(dtype, D, dl)
#define CVT_TO_INT_MODE(mode, kMode, dtype, D, dl)                                                               \
    ROW("cvt." mode "." dtype ".f32", "~" dl "=f", kPlain, Map1<FloatToInt<D, Integral::kMode, false>, D, float>), \
        ROW("cvt." mode ".ftz." dtype ".f32", "~" dl "=f", kPlain,                                               \
            Map1<FloatToInt<D, Integral::kMode, true>, D, float>),                                               \
        ROW("cvt." mode "." dtype ".f64", "~" dl "=g", kPlain, Map1<FloatToInt<D, Integral::kMode, false>, D, double>)
#define CVT_TO_INT(dtype, D, dl)                                                                     \
    CVT_TO_INT_MODE("rni", Nearest, dtype, D, dl), CVT_TO_INT_MODE("rzi", Zero, dtype, D, dl),       \
        CVT_TO_INT_MODE("rmi", Down, dtype, D, dl), CVT_TO_INT_MODE("rpi", Up, dtype, D, dl)
#define CVT_FROM_INT(stype, S, sl)                                                        \
    ROW("cvt.rn.f32." stype, "~f=" sl, kPlain, Map1<CastTo<float>, float, S>),            \
        ROW("cvt.rn.f64." stype, "~g=" sl, kPlain, Map1<CastTo<double>, double, S>)
#define CVT_INTEGRAL(mode, kMode)                                                                                  \
    ROW("cvt." mode ".f32.f32", "f=f", kPlain, Map1<RoundToIntegral<Integral::kMode, false>, float, float>),       \
        ROW("cvt." mode ".ftz.f32.f32", "f=f", kPlain, Map1<RoundToIntegral<Integral::kMode, true>, float, float>), \
        ROW("cvt." mode ".f64.f64", "g=g", kPlain, Map1<RoundToIntegral<Integral::kMode, false>, double, double>)

static const Row kConversionRows[] = {
    CVT_ALL_INT(CVT_INT),
    // .sat only where a value of the source can lie outside the destination, as PTX has it.
    SAT_FROM_WIDE("u8", u8, "b"),
    SAT_FROM_WIDE("s8", s8, "b"),
    SAT_FROM_32_64("u16", u16, "h"),
    SAT_FROM_32_64("s16", s16, "h"),
    CVT_INT_SAT("u8", u8, "s8", s8, "b=b"),
    CVT_INT_SAT("s8", s8, "u8", u8, "b=b"),
    CVT_INT_SAT("u16", u16, "s8", s8, "h=b"),
    CVT_INT_SAT("u16", u16, "s16", s16, "h=h"),
    CVT_INT_SAT("s16", s16, "u16", u16, "h=h"),
    CVT_INT_SAT("u32", u32, "s8", s8, "w=b"),
    CVT_INT_SAT("u32", u32, "s16", s16, "w=h"),
    CVT_INT_SAT("u32", u32, "s32", s32, "w=w"),
    CVT_INT_SAT("u32", u32, "u64", u64, "w=d"),
    CVT_INT_SAT("u32", u32, "s64", s64, "w=d"),
    CVT_INT_SAT("s32", s32, "u32", u32, "w=w"),
    CVT_INT_SAT("s32", s32, "u64", u64, "w=d"),
    CVT_INT_SAT("s32", s32, "s64", s64, "w=d"),
    CVT_INT_SAT("u64", u64, "s8", s8, "d=b"),
    CVT_INT_SAT("u64", u64, "s16", s16, "d=h"),
    CVT_INT_SAT("u64", u64, "s32", s32, "d=w"),
    CVT_INT_SAT("u64", u64, "s64", s64, "d=d"),
    CVT_INT_SAT("s64", s64, "u64", u64, "d=d"),
    CVT_TO_INT("u8", u8, "b"),
    CVT_TO_INT("s8", s8, "b"),
    CVT_TO_INT("u16", u16, "h"),
    CVT_TO_INT("s16", s16, "h"),
    CVT_TO_INT("u32", u32, "w"),
    CVT_TO_INT("s32", s32, "w"),
    CVT_TO_INT("u64", u64, "d"),
    CVT_TO_INT("s64", s64, "d"),
    CVT_FROM_INT("u8", u8, "b"),
    CVT_FROM_INT("s8", s8, "b"),
    CVT_FROM_INT("u16", u16, "h"),
    CVT_FROM_INT("s16", s16, "h"),
    CVT_FROM_INT("u32", u32, "w"),
    CVT_FROM_INT("s32", s32, "w"),
    CVT_FROM_INT("u64", u64, "d"),
    CVT_FROM_INT("s64", s64, "d"),
    CVT_INTEGRAL("rni", Nearest),
    CVT_INTEGRAL("rzi", Zero),
    CVT_INTEGRAL("rmi", Down),
    CVT_INTEGRAL("rpi", Up),
    ROW("cvt.f32.f32", "f=f", kPlain, Map1<FloatToFloat<false, false>, float, float>),
    ROW("cvt.ftz.f32.f32", "f=f", kPlain, Map1<FloatToFloat<true, false>, float, float>),
    ROW("cvt.sat.f32.f32", "f=f", kPlain, Map1<FloatToFloat<false, true>, float, float>),
    ROW("cvt.ftz.sat.f32.f32", "f=f", kPlain, Map1<FloatToFloat<true, true>, float, float>),
    ROW("cvt.f64.f32", "g=f", kPlain, Map1<FloatToDouble<false>, double, float>),
    ROW("cvt.ftz.f64.f32", "g=f", kPlain, Map1<FloatToDouble<true>, double, float>),
    ROW("cvt.rn.f32.f64", "f=g", kPlain, Map1<DoubleToFloat<false>, float, double>),
    ROW("cvt.rn.ftz.f32.f64", "f=g", kPlain, Map1<DoubleToFloat<true>, float, double>),
    ROW("cvt.f32.f16", "f=e", kPlain, Map1<F16ToFloat, float, f16>),
    ROW("cvt.ftz.f32.f16", "f=e", kPlain, Map1<F16ToFloat, float, f16>),
    ROW("cvt.f64.f16", "g=e", kPlain, Map1<F16ToDouble, double, f16>),
    ROW("cvt.rn.f16.f32", "e=f", kPlain, Map1<FloatToF16<false>, f16, float>),
    ROW("cvt.rn.ftz.f16.f32", "e=f", kPlain, Map1<FloatToF16<true>, f16, float>),
    ROW("cvt.rn.f16.f64", "e=g", kPlain, Map1<DoubleToF16, f16, double>),
    ROW("cvt.f32.bf16", "f=e", kPlain, Map1<Bf16ToFloat, float, bf16>),
    ROW("cvt.rn.bf16.f32", "e=f", kPlain, Map1<FloatToBf16, bf16, float>),
    ROW("cvt.rn.f16x2.f32", "x=ff", kPlain, Map2<FloatsToF16Pair, u32, float>),
    ROW("cvt.rn.bf16x2.f32", "x=ff", kPlain, Map2<FloatsToBf16Pair, u32, float>),
};

// ---- memory --------------------------------------------------------------------------------------------------------
// The name has the state space and the size; @32 is the form with 32-bit addresses (shared memory only).
#define MEMORY(space, kWhere, A, suffix)                                                                       \
    ROW("ld." space ".b16" suffix, "", kInternal, Load<Where::kWhere, u16, A>),                                \
        ROW("ld." space ".b32" suffix, "", kInternal, Load<Where::kWhere, u32, A>),                            \
        ROW("ld." space ".b64" suffix, "", kInternal, Load<Where::kWhere, u64, A>),                            \
        ROW("ld." space ".any" suffix, "", kInternal, LoadAny<Where::kWhere, A>),                              \
        ROW("st." space ".b16" suffix, "", kInternal, Store<Where::kWhere, u16, A>),                           \
        ROW("st." space ".b32" suffix, "", kInternal, Store<Where::kWhere, u32, A>),                           \
        ROW("st." space ".b64" suffix, "", kInternal, Store<Where::kWhere, u64, A>),                           \
        ROW("st." space ".any" suffix, "", kInternal, StoreAny<Where::kWhere, A>)

static const Row kMemoryRows[] = {
    MEMORY("global", Global, u64, ""),
    MEMORY("shared", Shared, u64, ""),
    MEMORY("shared", Shared, u32, "@32"),
    MEMORY("generic", Generic, u64, ""),
    ROW("ld.local.b16", "", kInternal, LoadAny<Where::Local, u64>),
    ROW("ld.local.b32", "", kInternal, LoadAny<Where::Local, u64>),
    ROW("ld.local.b64", "", kInternal, LoadAny<Where::Local, u64>),
    ROW("ld.local.any", "", kInternal, LoadAny<Where::Local, u64>),
    ROW("st.local.b16", "", kInternal, StoreAny<Where::Local, u64>),
    ROW("st.local.b32", "", kInternal, StoreAny<Where::Local, u64>),
    ROW("st.local.b64", "", kInternal, StoreAny<Where::Local, u64>),
    ROW("st.local.any", "", kInternal, StoreAny<Where::Local, u64>),
    ROW("ld.const.b16", "", kInternal, Load<Where::Constant, u16, u64>),
    ROW("ld.const.b32", "", kInternal, Load<Where::Constant, u32, u64>),
    ROW("ld.const.b64", "", kInternal, Load<Where::Constant, u64, u64>),
    ROW("ld.const.any", "", kInternal, LoadAny<Where::Constant, u64>),
};

#undef ROW
// NOLINTEND(bugprone-macro-parentheses)
