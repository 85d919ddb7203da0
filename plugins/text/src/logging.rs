//! `Assert`, `Print`, `PrintV2` and `Timestamp`.

use crate::{
    PLUGIN, count_attr, shown,
    summary::{Style, summary},
    text,
};
use std::{
    io::Write,
    path::PathBuf,
    sync::atomic::{AtomicI64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};
use tenon_files::Access;
use tenon_sdk::{
    KernelError,
    abi::LogLevel,
    author::{ComputeContext, CreateContext, Kernel, Mode, log},
    growth,
    reg::Numerics,
    register_kernel,
};

struct Assert {
    summarize: Option<usize>,
}

impl Kernel for Assert {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Assert { summarize: count_attr(c, "summarize")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let condition = c.input::<bool>(0)?;
        let (&[holds], []) = (condition.data, condition.dims) else {
            return Err(KernelError::invalid_argument(format!(
                "condition must be a scalar, found shape {:?}",
                condition.dims
            )));
        };
        if holds {
            return Ok(());
        }
        let mut message = b"assertion failed:".to_vec();
        for at in 1..c.input_count() {
            growth::append(&mut message, b" [")?;
            summary(c, at, self.summarize, Style::First, &mut message)?;
            growth::append(&mut message, b"]")?;
        }
        let message = String::from_utf8(message).unwrap_or_else(|bytes| shown(bytes.as_bytes()));
        Err(KernelError::invalid_argument(message))
    }
}

register_kernel!("Assert" on "CPU": Assert, numerics = Numerics::EXACT);

struct Print {
    message: Vec<u8>,
    summarize: Option<usize>,
    /// Number of times that it still prints; negative for always.
    left: AtomicI64,
}

impl Kernel for Print {
    const MODE: Mode = Mode::Blocking;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Print {
            message: c.attr::<&[u8]>("message")?.to_vec(),
            summarize: count_attr(c, "summarize")?,
            left: AtomicI64::new(c.attr::<i64>("first_n")?.max(-1)),
        })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        c.share(0, 0, c.dims(0))?;
        let once_less = |left: i64| (left > 0).then(|| left - 1);
        let order = Ordering::Relaxed;
        let prints =
            self.left.load(order) < 0 || self.left.fetch_update(order, order, once_less).is_ok();
        if !prints {
            return Ok(());
        }
        let mut line = self.message.clone();
        for at in 1..c.input_count() {
            line.push(b'[');
            summary(c, at, self.summarize, Style::First, &mut line)?;
            line.push(b']');
        }
        line.push(b'\n');
        // A closed standard error is no reason for a step to fail.
        let _ = std::io::stderr().lock().write_all(&line);
        Ok(())
    }
}

register_kernel!("Print" on "CPU": Print, numerics = Numerics::EXACT);

/// The destination of `PrintV2`.
enum Stream {
    Out,
    Err,
    Log(LogLevel),
    File(PathBuf, Access),
}

struct PrintV2 {
    stream: Stream,
    end: Vec<u8>,
}

impl Kernel for PrintV2 {
    const MODE: Mode = Mode::Blocking;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let stream = match c.attr::<&str>("output_stream")? {
            "stdout" => Stream::Out,
            "stderr" => Stream::Err,
            "log(info)" => Stream::Log(LogLevel::INFO),
            "log(warning)" => Stream::Log(LogLevel::WARN),
            "log(error)" => Stream::Log(LogLevel::ERROR),
            other => match other.strip_prefix("file://") {
                Some(path) => Stream::File(path.into(), Access::read(PLUGIN, c.knobs())?),
                None => {
                    return Err(KernelError::invalid_argument(format!(
                        "output_stream must be stdout, stderr, log(info), log(warning), log(error) or file://PATH, found '{other}'"
                    )));
                }
            },
        };
        Ok(PrintV2 { stream, end: c.attr::<&[u8]>("end")?.to_vec() })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let mut line = growth::copied(text(c, 0, "input")?)?;
        growth::append(&mut line, &self.end)?;
        match &self.stream {
            Stream::Out => drop(std::io::stdout().lock().write_all(&line)),
            Stream::Err => drop(std::io::stderr().lock().write_all(&line)),
            // The log adds line ends itself.
            Stream::Log(level) => log(*level, shown(&line).trim_end_matches('\n')),
            Stream::File(path, access) => access.append("output_stream", path, &line)?,
        }
        Ok(())
    }
}

register_kernel!("PrintV2" on "CPU": PrintV2, host_memory = &["input"], numerics = Numerics::EXACT);

fn timestamp(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.map_err(|_| KernelError::internal("the clock is before 1970"))?.as_secs_f64();
    c.output::<f64>(0, &[])?.data[0] = seconds;
    Ok(())
}

register_kernel!("Timestamp" on "CPU": fn timestamp, numerics = Numerics::EXACT);
