//! One error type. Its kind maps one to one to a Python exception class.

use crate::dtype::DType;
use crate::words::{self, WrongOut};
use std::borrow::Cow;
use std::fmt;

/// The Python exception class that an [`Error`] becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Runtime,
    Value,
    Type,
    Index,
    NotImplemented,
    /// As `NotImplemented`: no kernel for these types or sizes. Who asked for it may compute in another way.
    NoKernel,
    OutOfMemory,
    /// A device's driver gave up.
    Accelerator,
    LinAlg,
    Overflow,
    Assertion,
    Buffer,
    Attribute,
    Key,
    /// An exception raised by user code inside a callback, kept by the host language.
    Host,
}

/// What went wrong. One pointer, so that results with it return in registers.
pub struct Error(Box<Fault>);

/// The class of error, and text that says what must hold and what it got.
pub struct Fault {
    pub kind: Kind,
    /// The public name of the function that was called, known where it was called.
    pub op: Option<Cow<'static, str>>,
    pub text: String,
    /// Where it is the type of `out=`: functions have words of their own for that.
    pub wrong_out: Option<WrongOut>,
    /// Whether the text begins where the name of the op belongs, in quotes, which its kernel does not know.
    pub unnamed: bool,
    /// Whether it is that elements of slices were read, which are computed at once.
    pub unread: bool,
    /// The host's own exception object, carried through the engine unchanged.
    pub host: Option<Box<dyn std::any::Any + Send + Sync>>,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    #[cold]
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Error(Box::new(Fault {
            kind,
            op: None,
            text: text.into(),
            wrong_out: None,
            unnamed: false,
            unread: false,
            host: None,
        }))
    }
    pub fn runtime(text: impl Into<String>) -> Self {
        Error::new(Kind::Runtime, text)
    }
    pub fn value(text: impl Into<String>) -> Self {
        Error::new(Kind::Value, text)
    }
    pub fn ty(text: impl Into<String>) -> Self {
        Error::new(Kind::Type, text)
    }
    pub fn index(text: impl Into<String>) -> Self {
        Error::new(Kind::Index, text)
    }

    /// Of a kernel that is chosen by type, where there is none for `dtype`; who calls it says whose it is.
    #[cold]
    pub fn no_loop(dtype: DType) -> Self {
        let mut e = Error::new(
            Kind::NoKernel,
            format!(
                "not implemented for '{}'; convert the tensor with .to(dtype)",
                dtype.scalar_name()
            ),
        );
        e.unnamed = true;
        e
    }

    /// Raised by a call of `op`, unless it is known whose.
    #[cold]
    pub fn of(mut self, op: impl Into<Cow<'static, str>>) -> Self {
        if self.op.is_none() {
            let op = op.into();
            words::of_call(&op, &mut self);
            self.op = Some(op);
        }
        self
    }
}

impl std::ops::Deref for Error {
    type Target = Fault;
    fn deref(&self) -> &Fault {
        &self.0
    }
}
impl std::ops::DerefMut for Error {
    fn deref_mut(&mut self) -> &mut Fault {
        &mut self.0
    }
}

/// Whether a text tells which function it is about, in one of the ways in which PyTorch's do:
/// `add(): ..`, `linalg.inv: ..`, `stack expects ..`, `"max_cpu" not implemented`, `for 'add'`.
fn names(text: &str, op: &str) -> bool {
    let stem = op.trim_matches('_');
    text.match_indices(stem).any(|(i, _)| {
        let before = text[..i].chars().next_back();
        let after = text[i + stem.len()..].chars().next();
        let word = |c: char| c.is_alphanumeric() || c == '_';
        match (before, after) {
            (Some(b), _) if word(b) && b != '_' => false,
            (None | Some('.'), a) => !a.is_some_and(char::is_alphanumeric),
            (Some(b), a) => a.is_some_and(|a| "(:'\"`".contains(a)) || b == '"' && a == Some('_'),
        }
    })
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.op {
            Some(op) if !names(&self.text, op) => write!(f, "{op}(): {}", self.text),
            _ => f.write_str(&self.text),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}Error: {self}", self.kind)
    }
}

impl std::error::Error for Error {}

/// The function's name from its node's: `AddBackward0` is `add`, `LogSoftmaxBackward0` is
/// `log_softmax`.
pub fn function_name(node: &str) -> String {
    let stem = node.trim_end_matches(|c: char| c.is_ascii_digit());
    let stem = stem.strip_suffix("Backward").unwrap_or(stem);
    let mut out = String::new();
    for (i, c) in stem.chars().enumerate() {
        if c.is_ascii_uppercase() && i > 0 && !out.ends_with('_') {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Leaves a kernel with an error where none can be returned; prints nothing on the way.
#[cold]
pub fn unwind(e: Error) -> ! {
    std::panic::resume_unwind(Box::new(e))
}

/// Runs `f`, and returns an error that it [unwinds](unwind) with. Other panics go on.
pub fn caught<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_or_else(|cause| {
        match cause.downcast::<Error>() {
            Ok(e) => Err(*e),
            Err(cause) => std::panic::resume_unwind(cause),
        }
    })
}

/// Returns early with an error of the named [`Kind`].
#[macro_export]
macro_rules! bail {
    ($kind:ident, $($text:tt)*) => {
        return Err($crate::error::Error::new($crate::error::Kind::$kind, format!($($text)*)))
    };
}

/// Returns early from a kernel that is chosen by type, where there is none for this one.
#[macro_export]
macro_rules! no_loop {
    ($dtype:expr) => {
        return Err($crate::error::Error::no_loop($dtype))
    };
}

/// Returns early with an error of the named [`Kind`] unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($cond:expr, $kind:ident, $($text:tt)*) => {
        if $cond {
        } else {
            $crate::bail!($kind, $($text)*);
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_names_the_function_is_left_as_it_is() {
        let shown = |op, text: &str| Error::runtime(text).of(op).to_string();
        for (op, text) in [
            ("add", "add(): no"),
            ("add_", "add: no"),
            ("inv", "torch.linalg.inv: no"),
            ("stack", "stack expects tensors"),
            ("max", "\"max_cpu\" not implemented for 'Bool'"),
            ("where", "no derivative for 'where'"),
        ] {
            assert_eq!(shown(op, text), text);
        }
        for (op, text) in [
            ("add", "addmm(): no"),
            ("all", "Expected all tensors to be on one device"),
            ("dim", "keepdim must be a bool"),
        ] {
            assert_eq!(shown(op, text), format!("{op}(): {text}"));
        }
    }

    #[test]
    fn the_function_that_was_called_first_keeps_its_name() {
        assert_eq!(
            Error::runtime("no").of("mm").of("linear").to_string(),
            "mm(): no"
        );
    }

    #[test]
    fn what_unwinds_with_an_error_returns_it() {
        let e = caught(|| -> Result<()> { unwind(Error::value("no")) }).unwrap_err();
        assert_eq!((e.kind, e.text.as_str()), (Kind::Value, "no"));
        assert_eq!(caught(|| Ok(3)).unwrap(), 3);
    }
}
