use std::fmt::Debug;
use std::io::{self, Write};

use serde_json::{Value, json};
use via::{Nic, Reliability, ReliabilitySet};

use crate::error::{Context, Result};
use crate::netpipe::table::{new_table, right};
use crate::nic;

/// VI NICs, their limits and what they do themselves
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// As JSON, for programs
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sovia vi list
  sovia vi list --json | jq '.[0].capabilities'";

/// `sovia vi list`.
pub(crate) fn main(options: &Options) -> Result<()> {
    let nics = nic::all()?;
    let mut stdout = io::stdout().lock();
    if options.json {
        let list: Value = nics.iter().map(describe).collect();
        return writeln!(stdout, "{list:#}").context("standard output");
    }
    for nic in &nics {
        let Value::Object(groups) = describe(nic) else {
            unreachable!("it is an object")
        };
        writeln!(stdout, "{}", nic.attributes().name).context("standard output")?;
        let mut table = new_table();
        for (name, value) in groups.values().filter_map(Value::as_object).flatten() {
            table.add_row([name.replace('_', " ").into(), right(text(value))]);
        }
        writeln!(stdout, "{table}").context("standard output")?;
    }
    Ok(())
}

/// Everything that a NIC says about itself, named as in the `via` crate.
fn describe(nic: &Nic) -> Value {
    let attributes = nic.attributes();
    let capabilities = nic.capabilities();
    let levels = |set: ReliabilitySet| -> Vec<_> {
        Reliability::ALL
            .into_iter()
            .filter(|&level| set.contains(level))
            .map(kebab)
            .collect()
    };
    let [a, b, c, d, e, f] = attributes.local_address;
    let foreign = capabilities.rdma_write_copies_foreign;
    json!({
        "name": attributes.name,
        "attributes": {
            "hardware_version": attributes.hardware_version,
            "provider_version": attributes.provider_version,
            "local_address": format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"),
            "thread_safe": attributes.thread_safe,
            "max_discriminator_len": attributes.max_discriminator_len,
            "max_register_bytes": attributes.max_register_bytes,
            "max_register_regions": attributes.max_register_regions,
            "max_register_block_bytes": attributes.max_register_block_bytes,
            "max_vi": attributes.max_vi,
            "max_descriptors_per_queue": attributes.max_descriptors_per_queue,
            "max_segments_per_desc": attributes.max_segments_per_desc,
            "max_cq": attributes.max_cq,
            "max_cq_entries": attributes.max_cq_entries,
            "max_transfer_size": attributes.max_transfer_size,
            "native_mtu": attributes.native_mtu,
            "max_ptags": attributes.max_ptags,
            "reliability": levels(attributes.reliability),
            "rdma_read": levels(attributes.rdma_read),
        },
        "capabilities": {
            "engine": kebab(capabilities.engine),
            "send_copies": capabilities.send_copies,
            "short_send_copies": capabilities.short_send_copies,
            "short_max": capabilities.short_max,
            "rdma_write_copies": capabilities.rdma_write_copies,
            "rdma_write_copies_foreign": [foreign.0, foreign.1],
            "registration_pays": capabilities.registration_pays,
            "buffers_sends": capabilities.buffers_sends,
            "buffer_bytes": capabilities.buffer_bytes,
            "flow_control": capabilities.flow_control,
            "appendable": capabilities.appendable,
            "integrity": kebab(capabilities.integrity),
            "wait": kebab(capabilities.wait),
            "immediate_data": capabilities.immediate_data,
            "discovers": capabilities.discovers,
        },
    })
}

/// `ReliableDelivery` as `reliable-delivery`.
fn kebab(variant: impl Debug) -> String {
    let name = format!("{variant:?}");
    let mut kebab = String::with_capacity(name.len() + 2);
    for letter in name.chars() {
        if letter.is_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.extend(letter.to_lowercase());
    }
    kebab
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variants() {
        assert_eq!(kebab(Reliability::ReliableDelivery), "reliable-delivery");
        assert_eq!(kebab(via::WaitOn::FutexAndFd), "futex-and-fd");
    }
}
