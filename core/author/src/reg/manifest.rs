//! The manifest: one JSON line per registration in a section of the library, written by const evaluation,
//! so that it is read without running anything.
//!
//! A record's bytes have no pointer and no padding: the linker joins them. The first line of a Rust plugin,
//! of kind `plugin`, is written by `export_plugin!`.

use super::{KernelReg, OpReg, Registration, Site};
use tenon_abi::{DType, kernel_def_flags};

/// The content of the line of kind `plugin`; filled by `export_plugin!`.
#[derive(Clone, Copy)]
pub struct PluginRecord {
    /// Package.
    pub name: &'static str,
    /// Version of the package.
    pub version: &'static str,
    /// `unwind` or `abort`.
    pub panic: &'static str,
    /// `debug` or `release`.
    pub profile: &'static str,
    /// Architecture.
    pub arch: &'static str,
    /// CPU features the library was compiled for, beyond which nothing is checked at run time.
    pub features: &'static [&'static str],
}

/// Writes into a buffer, or only counts: the same code runs for both.
struct Writer<const N: usize> {
    bytes: [u8; N],
    len: usize,
    counting: bool,
}

impl<const N: usize> Writer<N> {
    const fn new(counting: bool) -> Writer<N> {
        Writer { bytes: [0; N], len: 0, counting }
    }

    const fn byte(&mut self, byte: u8) {
        if !self.counting {
            self.bytes[self.len] = byte;
        }
        self.len += 1;
    }

    const fn raw(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            self.byte(bytes[at]);
            at += 1;
        }
    }

    const fn text(&mut self, text: &str) {
        self.byte(b'"');
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'"' | b'\\' => {
                    self.byte(b'\\');
                    self.byte(bytes[at]);
                }
                0..0x20 => self.byte(b' '),
                other => self.byte(other),
            }
            at += 1;
        }
        self.byte(b'"');
    }

    const fn key(&mut self, key: &str) {
        self.byte(b',');
        self.text(key);
        self.byte(b':');
    }

    const fn field(&mut self, key: &str, value: &str) {
        self.key(key);
        self.text(value);
    }

    const fn number(&mut self, value: i64) {
        if value < 0 {
            self.byte(b'-');
        }
        let mut rest = value.unsigned_abs();
        let mut digits = [0u8; 20];
        let mut count = 0;
        loop {
            digits[count] = b'0' + (rest % 10) as u8;
            rest /= 10;
            count += 1;
            if rest == 0 {
                break;
            }
        }
        while count > 0 {
            count -= 1;
            self.byte(digits[count]);
        }
    }

    const fn texts(&mut self, key: &str, items: &[&str]) {
        self.key(key);
        self.byte(b'[');
        let mut at = 0;
        while at < items.len() {
            if at > 0 {
                self.byte(b',');
            }
            self.text(items[at]);
            at += 1;
        }
        self.byte(b']');
    }

    const fn types(&mut self, types: &[DType]) {
        self.byte(b'[');
        let mut at = 0;
        while at < types.len() {
            if at > 0 {
                self.byte(b',');
            }
            self.text(types[at].name());
            at += 1;
        }
        self.byte(b']');
    }

    const fn kind(&mut self, kind: &str) {
        self.raw("{\"kind\":");
        self.text(kind);
    }

    const fn end(&mut self, site: &Site) {
        self.field("crate", site.krate);
        self.field("file", site.file);
        self.key("line");
        self.number(site.line as i64);
        self.raw("}\n");
    }

    const fn op(&mut self, op: &OpReg) {
        self.kind("op");
        self.field("name", op.name);
        self.texts("inputs", op.inputs);
        self.texts("outputs", op.outputs);
        self.texts("attrs", op.attrs);
        if !op.cases.is_empty() {
            self.texts("cases", op.cases);
        }
        self.end(&op.site);
    }

    const fn kernel(&mut self, kernel: &KernelReg) {
        self.kind("kernel");
        self.field("op", kernel.op);
        self.field("device", kernel.device);
        self.field("label", kernel.label);
        self.key("priority");
        self.number(kernel.priority as i64);
        self.key("on_request");
        self.raw(if kernel.flags & kernel_def_flags::ON_REQUEST != 0 { "true" } else { "false" });
        self.key("types");
        self.byte(b'{');
        let mut at = 0;
        while at < kernel.constraint_count {
            if at > 0 {
                self.byte(b',');
            }
            self.text(kernel.constraints[at].0);
            self.byte(b':');
            self.types(kernel.constraints[at].1);
            at += 1;
        }
        self.byte(b'}');
        self.texts("features", kernel.features);
        self.end(&kernel.site);
    }

    const fn registration(&mut self, registration: &Registration) {
        match registration {
            Registration::Op(op) => self.op(op),
            Registration::Kernel(kernel) => self.kernel(kernel),
            Registration::Device(device) => {
                self.kind("device");
                self.field("name", device.name);
                self.key("priority");
                self.number(device.priority as i64);
                self.end(&device.site);
            }
            Registration::Knob(knob) => {
                self.kind("knob");
                self.field("name", knob.name());
                self.field("default", knob.default_text());
                self.end(knob.site());
            }
            Registration::Extension(extension) => {
                self.kind("extension");
                self.key("tag");
                self.number(extension.tag as i64);
                self.end(&extension.site);
            }
        }
    }

    const fn plugin(&mut self, plugin: &PluginRecord) {
        self.kind("plugin");
        self.field("name", plugin.name);
        self.field("version", plugin.version);
        self.key("abi");
        self.byte(b'[');
        self.number(tenon_abi::ABI_MAJOR as i64);
        self.byte(b',');
        self.number(tenon_abi::ABI_MINOR as i64);
        self.byte(b']');
        self.field("panic", plugin.panic);
        self.field("profile", plugin.profile);
        self.field("arch", plugin.arch);
        self.texts("features", plugin.features);
        self.raw("}\n");
    }
}

/// Length of the record of a registration.
pub const fn record_len(registration: &Registration) -> usize {
    let mut counter = Writer::<0>::new(true);
    counter.registration(registration);
    counter.len
}

/// The record of a registration; `N` is its [`record_len`].
pub const fn record<const N: usize>(registration: &Registration) -> [u8; N] {
    let mut writer = Writer::<N>::new(false);
    writer.registration(registration);
    writer.bytes
}

/// Length of the record of a plugin.
pub const fn plugin_len(plugin: &PluginRecord) -> usize {
    let mut counter = Writer::<0>::new(true);
    counter.plugin(plugin);
    counter.len
}

/// The record of a plugin; `N` is its [`plugin_len`].
pub const fn plugin_record<const N: usize>(plugin: &PluginRecord) -> [u8; N] {
    let mut writer = Writer::<N>::new(false);
    writer.plugin(plugin);
    writer.bytes
}
