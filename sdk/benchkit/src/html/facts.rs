//! Where, when and with what was measured.

use super::{markup::Markup, model::Model};
use crate::{
    record::{Plugin, Roofline},
    words::figure,
};
use std::fmt::Display;

/// The line below the title.
pub fn line(model: &Model<'_>) -> String {
    let run = &model.report.run;
    let machine = &run.machine;
    let cores = if machine.cores == 1 { "core" } else { "cores" };
    let threads = if run.threads == 1 { "thread" } else { "threads" };
    let parts = [
        machine.cpu.clone(),
        format!("{} {threads} on {} {cores}", run.threads, machine.cores),
        run.date.clone(),
        format!("Tenon {}", run.tenon),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" \u{b7} ")
}

/// All facts.
pub fn section(page: &mut Markup, model: &Model<'_>) {
    let run = &model.report.run;
    page.element("section", &[("aria-labelledby", &"facts")], |section| {
        section.leaf("h2", &[("id", &"facts")], "Where and how");
        section.element("dl", &[], |list| {
            for (name, value) in facts(model) {
                list.leaf("dt", &[], name).leaf("dd", &[], value);
            }
        });
        section.leaf("h3", &[], "Command");
        section.element("pre", &[("tabindex", &"0")], |pre| {
            pre.leaf("code", &[], run.command.join(" "));
        });
        plugins(section, &run.plugins);
        if let Some(limits) = &run.roofline {
            roofline(section, limits);
        }
    });
}

fn facts(model: &Model<'_>) -> Vec<(&'static str, String)> {
    let run = &model.report.run;
    let machine = &run.machine;
    let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let mut facts = vec![
        ("CPU", machine.cpu.clone()),
        ("Features", machine.features.join(" ")),
        ("Cores", machine.cores.to_string()),
    ];
    let mut maybe = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    maybe("Allowed cores", machine.allowed.clone());
    maybe("Governor", machine.governor.clone());
    maybe("Virtual machine", machine.hypervisor.map(yes));
    maybe("Load before", machine.load.map(figure));
    maybe("System", Some(machine.system.clone()));
    maybe("Commit", run.commit.clone());
    maybe("Date", Some(run.date.clone()));
    maybe("Threads", Some(run.threads.to_string()));
    maybe("Processes", Some(run.processes.to_string()));
    maybe("Time per variant", Some(format!("{} s at most", run.budget_s)));
    let cold = model.report.records.iter().any(|record| record.cold);
    maybe("Caches", Some(if cold { "cold" } else { "warm" }.to_owned()));
    maybe("Seed", Some(run.seed.to_string()));
    maybe("Noise of this run", run.noise_floor.map(|noise| format!("{:.2} %", 100.0 * noise)));
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

fn scroll(page: &mut Markup, name: &str, inside: impl FnOnce(&mut Markup)) {
    let attrs: [(&str, &dyn Display); 4] =
        [("class", &"scroll"), ("tabindex", &"0"), ("role", &"region"), ("aria-label", &name)];
    page.element("div", &attrs, inside);
}

fn head(table: &mut Markup, names: &[&str]) {
    table.element("thead", &[], |head| {
        head.element("tr", &[], |row| {
            names.iter().for_each(|name| {
                row.leaf("th", &[("scope", &"col")], name);
            });
        });
    });
}

fn plugins(page: &mut Markup, plugins: &[Plugin]) {
    scroll(page, "Plugins", |scroll| {
        scroll.element("table", &[], |table| {
            table.leaf("caption", &[], "Plugins, with the SHA-256 of their files");
            head(table, &["Plugin", "Version", "File", "Digest"]);
            table.element("tbody", &[], |body| {
                for plugin in plugins {
                    let linked = plugin.digest.is_empty();
                    let digest = if linked { "part of the program" } else { &plugin.digest };
                    body.element("tr", &[], |row| {
                        row.leaf("th", &[("scope", &"row")], &plugin.name);
                        row.leaf("td", &[], &plugin.version);
                        row.leaf("td", &[], plugin.file.as_deref().unwrap_or_default());
                        row.leaf("td", &[("class", if linked { &"" } else { &"digest" })], digest);
                    });
                }
            });
        });
    });
}

fn roofline(page: &mut Markup, limits: &Roofline) {
    scroll(page, "Bandwidth of memory", |scroll| {
        scroll.element("table", &[], |table| {
            table.leaf("caption", &[], "Memory, GB/s as the program asks for them");
            head(table, &["Level", "Up to", "Read", "Write", "Copy", "Triad"]);
            table.element("tbody", &[], |body| {
                for level in &limits.levels {
                    let bytes = level.bytes.map(|bytes| format!("{} KiB", bytes / 1024));
                    body.element("tr", &[], |row| {
                        row.leaf("th", &[("scope", &"row")], &level.name);
                        row.leaf("td", &[("class", &"number")], bytes.unwrap_or_default());
                        for rate in [level.read, level.write, level.copy, level.triad] {
                            row.leaf("td", &[("class", &"number")], figure(rate));
                        }
                    });
                }
            });
        });
    });
    scroll(page, "Arithmetic", |scroll| {
        scroll.element("table", &[], |table| {
            table.leaf("caption", &[], "Arithmetic, operations per nanosecond");
            head(table, &["Type", "Instructions", "GFLOP/s or GOP/s"]);
            table.element("tbody", &[], |body| {
                for peak in &limits.peaks {
                    body.element("tr", &[], |row| {
                        row.leaf("th", &[("scope", &"row")], &peak.dtype);
                        row.leaf("td", &[], &peak.isa);
                        row.leaf("td", &[("class", &"number")], figure(peak.rate));
                    });
                }
            });
        });
    });
}
