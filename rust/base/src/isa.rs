//! Instruction sets: which of them the processor has, and code compiled for each. Their features
//! are listed here and nowhere else.

/// The instruction sets that kernels are compiled for, weakest first. NEON is part of every aarch64,
/// which has no other set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Portable,
    Neon,
    Avx2,
    Avx512,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Neon => "neon",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// The best set of this processor, by the features that [`compiled!`](crate::compiled) names.
    #[cfg(target_arch = "x86_64")]
    pub fn detect() -> Level {
        use std::arch::is_x86_feature_detected as has;
        let bits = has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt");
        if !(bits && has!("avx2") && has!("fma") && has!("f16c")) {
            Level::Portable
        } else if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
            Level::Avx512
        } else {
            Level::Avx2
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn detect() -> Level {
        match cfg!(target_arch = "aarch64") {
            true => Level::Neon,
            false => Level::Portable,
        }
    }

    /// Whether a machine whose best set this is can run code for `other`.
    pub fn runs(self, other: Level) -> bool {
        other <= self && (other != Level::Neon || self == Level::Neon)
    }
}

/// Whether the processor multiplies pairs of bfloat16.
#[cfg(target_arch = "x86_64")]
pub fn has_bf16() -> bool {
    std::arch::is_x86_feature_detected!("avx512bf16")
}

/// Compiles functions with the features of one set: `compiled! { avx2: unsafe fn f() { .. } }`.
#[macro_export]
macro_rules! compiled {
    (portable: $($f:item)*) => { $($f)* };
    (neon: $($f:item)*) => { $(
        #[cfg(target_arch = "aarch64")]
        $f
    )* };
    (avx2: $($f:item)*) => { $(
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
        $f
    )* };
    (avx512: $($f:item)*) => { $(
        #[cfg(target_arch = "x86_64")]
        #[target_feature(
            enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"
        )]
        $f
    )* };
}

/// Compiles a function for each instruction set; a build for debugging, which should be quick, has
/// only portable ones. On aarch64 the portable ones are NEON's. Type parameters, each with one bound, and then constants stand in brackets.
///
/// * `fn name[T: Bound; const N: usize](x: &[T]) -> T { .. }`, safe or not, calls the best one.
/// * `unsafe fn name[T: Bound; in V](x: &[T]) { .. }`: V is the register of `Vectors` for `T`, the first type, a
///   `Simd`; both are in scope.
/// * `fn name[..] -> Kernel<T> = (x: *const T) { .. }` returns the best one, a function pointer;
///   `-> Kernel<T>, at most avx2 = ..` where wider vectors are not worth their code.
/// * `match avx512 => .., avx2 => .., neon => .., portable => ..` is the value for the best set, in
///   any build.
#[macro_export]
macro_rules! per_isa {
    (match avx512 => $wide:expr, avx2 => $middle:expr, neon => $pair:expr,
     portable => $narrow:expr $(,)?) => {
        match $crate::machine::level() {
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Level::Avx512 => $wide,
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Level::Avx2 => $middle,
            #[cfg(target_arch = "aarch64")]
            $crate::isa::Level::Neon => $pair,
            _ => $narrow,
        }
    };
    ($(#[$doc:meta])* $v:vis unsafe fn $name:ident
        [$($G:ident: $B:path),* $(; $(const $C:ident: $K:ty),*)?]
        ($($arg:ident: $t:ty),* $(,)?) $(-> $r:ty)? $body:block) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        $v unsafe fn $name<$($G: $B,)* $($(const $C: $K),*)?>($($arg: $t),*) $(-> $r)? {
            $crate::per_isa!(@each [unsafe] [$($G: $B,)* $($(const $C: $K),*)?]
                ($($arg: $t),*) [$(-> $r)?] $body);
            // SAFETY: the caller gives what the body asks for; the machine has the instructions.
            unsafe { $crate::per_isa!(@best at_avx512 [$($G,)* $($($C),*)?] ($($arg),*)) }
        }
    };
    ($(#[$doc:meta])* $v:vis unsafe fn $name:ident
        [$T:ident: $B:path $(, $G:ident: $D:path)*; in $V:ident]
        ($($arg:ident: $t:ty),* $(,)?) $(-> $r:ty)? $body:block) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        $v unsafe fn $name<$T: $B $(, $G: $D)*>($($arg: $t),*) $(-> $r)? {
            $crate::per_isa!(@each [unsafe] [$T: $B $(, $G: $D)*, $V: Simd<Elem = $T>]
                ($($arg: $t),*) [$(-> $r)?] $body);
            // SAFETY: the caller gives what the body asks for; the machine has the instructions.
            unsafe {
                match $crate::machine::level() {
                    #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
                    $crate::isa::Level::Avx512 => at_avx512::<$T $(, $G)*, <$T as Vectors>::Avx512>($($arg),*),
                    #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
                    $crate::isa::Level::Avx2 => at_avx2::<$T $(, $G)*, <$T as Vectors>::Avx2>($($arg),*),
                    #[cfg(target_arch = "aarch64")]
                    $crate::isa::Level::Neon => at_portable::<$T $(, $G)*, <$T as Vectors>::Neon>($($arg),*),
                    _ => at_portable::<$T $(, $G)*, <$T as Vectors>::Portable>($($arg),*),
                }
            }
        }
    };
    ($(#[$doc:meta])* $v:vis fn $name:ident
        [$($G:ident: $B:path),* $(; $(const $C:ident: $K:ty),*)?]
        ($($arg:ident: $t:ty),* $(,)?) $(-> $r:ty)? $body:block) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, unused_unsafe)]
        $v fn $name<$($G: $B,)* $($(const $C: $K),*)?>($($arg: $t),*) $(-> $r)? {
            $crate::per_isa!(@each [] [$($G: $B,)* $($(const $C: $K),*)?]
                ($($arg: $t),*) [$(-> $r)?] $body);
            // SAFETY: nothing but the instructions is asked for, and the machine has them.
            unsafe { $crate::per_isa!(@best at_avx512 [$($G,)* $($($C),*)?] ($($arg),*)) }
        }
    };
    ($(#[$doc:meta])* $v:vis fn $name:ident
        [$($G:ident: $B:path),* $(; $(const $C:ident: $K:ty),*)?]
        -> $pointer:ty = ($($arg:ident: $t:ty),* $(,)?) $(-> $r:ty)? $body:block) => {
        $(#[$doc])*
        $v fn $name<$($G: $B,)* $($(const $C: $K),*)?>() -> $pointer {
            $crate::per_isa!(@each [unsafe] [$($G: $B,)* $($(const $C: $K),*)?]
                ($($arg: $t),*) [$(-> $r)?] $body);
            $crate::per_isa!(@best at_avx512 [$($G,)* $($($C),*)?])
        }
    };
    ($(#[$doc:meta])* $v:vis fn $name:ident
        [$($G:ident: $B:path),* $(; $(const $C:ident: $K:ty),*)?]
        -> $pointer:ty, at most avx2
        = ($($arg:ident: $t:ty),* $(,)?) $(-> $r:ty)? $body:block) => {
        $(#[$doc])*
        $v fn $name<$($G: $B,)* $($(const $C: $K),*)?>() -> $pointer {
            $crate::per_isa!(@two [unsafe] [$($G: $B,)* $($(const $C: $K),*)?]
                ($($arg: $t),*) [$(-> $r)?] $body);
            $crate::per_isa!(@best at_avx2 [$($G,)* $($($C),*)?])
        }
    };
    // What follows is used by the rules above. Each set has the body itself, not a call of one: a
    // closure has the instructions of the function that it stands in.
    (@each [$($unsafe:tt)?] [$($generics:tt)*] ($($arg:ident: $t:ty),*)
        [$($r:tt)*] $body:block) => {
        $crate::per_isa!(@two [$($unsafe)?] [$($generics)*] ($($arg: $t),*) [$($r)*] $body);
        #[cfg(not(debug_assertions))]
        $crate::compiled! {
            avx512:
            #[allow(clippy::too_many_arguments)]
            $($unsafe)? fn at_avx512<$($generics)*>($($arg: $t),*) $($r)* $body
        }
    };
    (@two [$($unsafe:tt)?] [$($generics:tt)*] ($($arg:ident: $t:ty),*)
        [$($r:tt)*] $body:block) => {
        #[allow(clippy::too_many_arguments)]
        $($unsafe)? fn at_portable<$($generics)*>($($arg: $t),*) $($r)* $body
        #[cfg(not(debug_assertions))]
        $crate::compiled! {
            avx2:
            #[allow(clippy::too_many_arguments)]
            $($unsafe)? fn at_avx2<$($generics)*>($($arg: $t),*) $($r)* $body
        }
    };
    (@best $widest:ident [$($names:tt)*] $($args:tt)?) => {
        match $crate::machine::level() {
            #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
            $crate::isa::Level::Avx512 => $widest::<$($names)*> $($args)?,
            #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
            $crate::isa::Level::Avx2 => at_avx2::<$($names)*> $($args)?,
            _ => at_portable::<$($names)*> $($args)?,
        }
    };
}
