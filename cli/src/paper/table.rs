//! Table I and Figure 10 of the report.

use super::end::CALL_BYTES;
use super::report::Report;
use super::way::Way;
use super::{ftp, rpc, under, words};
use crate::netpipe::table::{bytes, significant};
use crate::report::{Bar, Bars, Curve, Curves, Group, Plot, Scale, Section, Table};

impl Report {
    /// Seconds, the best; `None` if it was not measured.
    fn seconds(&self, by: ftp::By, way: Way, bytes: u64) -> Option<f64> {
        let of = self
            .transfers
            .iter()
            .filter(|transfer| (transfer.by, transfer.way, transfer.bytes) == (by, way, bytes));
        of.map(|transfer| transfer.seconds).min_by(f64::total_cmp)
    }

    /// How much faster than FTP over TCP, in this run.
    fn gain(&self, by: ftp::By, way: Way, bytes: u64) -> Option<f64> {
        let tcp = self.seconds(ftp::By::Ftp, Way::Tcp, bytes)?;
        Some(tcp / self.seconds(by, way, bytes)?)
    }

    pub(super) fn files(&self) -> Option<Section> {
        if self.transfers.is_empty() {
            return None;
        }
        let mut table = Table::new([
            "MB/s (seconds)",
            "19 MB",
            "× FTP over TCP",
            "the paper",
            "145 MB",
            "× FTP over TCP",
            "the paper",
        ]);
        let times = |ratio: Option<f64>| {
            ratio.map_or_else(
                || "-".to_owned(),
                |ratio| format!("{} ×", significant(ratio)),
            )
        };
        for (by, way) in ftp::ROWS {
            let mut row = vec![ftp::name(by, way)];
            for (at, bytes) in ftp::FILES.into_iter().enumerate() {
                let seconds = self.seconds(by, way, bytes);
                row.push(seconds.map_or_else(
                    || "-".to_owned(),
                    |seconds| {
                        let speed = bytes as f64 / seconds / 1e6;
                        format!("{} ({})", significant(speed), significant(seconds))
                    },
                ));
                row.push(times(self.gain(by, way, bytes)));
                let paper = words::ftp_mbps(by, way).zip(words::ftp_mbps(ftp::By::Ftp, Way::Tcp));
                row.push(times(paper.map(|(this, tcp)| this[at] / tcp[at])));
            }
            table.row(row);
        }
        let group = |bytes: u64, title: &str| Group {
            title: title.to_owned(),
            bars: ftp::ROWS
                .into_iter()
                .enumerate()
                .skip(1)
                .filter_map(|(hue, (by, way))| {
                    Some(Bar {
                        name: ftp::name(by, way),
                        value: self.gain(by, way, bytes)?,
                        spread: None,
                        hue: hue - 1,
                    })
                })
                .collect(),
        };
        let bars = Bars {
            title: "times FTP over TCP".to_owned(),
            groups: vec![
                group(ftp::FILES[0], "19 MB"),
                group(ftp::FILES[1], "145 MB"),
            ],
        };
        let large = ftp::FILES[1];
        let ring = self.gain(ftp::By::Ftp, Way::Ring, large);
        let bound = self.gain(ftp::By::Copy, Way::Native, large);
        Some(Section {
            title: "Table I: files from memory to memory".to_owned(),
            plots: vec![Plot::Bars(bars)],
            table: Some(table),
            words: vec![
                under::under_files(ring, bound),
                words::OWN_TRANSFER.to_owned(),
            ],
        })
    }

    /// Nanoseconds there and back.
    fn call(&self, by: rpc::By, way: Way, bytes: usize) -> Option<f64> {
        let call = self
            .calls
            .iter()
            .find(|call| (call.by, call.way, call.bytes) == (by, way, bytes))?;
        Some(call.ns)
    }

    pub(super) fn remote_calls(&self) -> Option<Section> {
        let measured: Vec<_> = rpc::CURVES
            .into_iter()
            .filter(|&(by, way)| self.call(by, way, 0).is_some())
            .collect();
        if measured.is_empty() {
            return None;
        }
        let header = measured.iter().map(|&(by, way)| rpc::name(by, way));
        let mut table =
            Table::new(std::iter::once("argument, µs there and back".to_owned()).chain(header));
        for size in CALL_BYTES {
            let cells = measured.iter().map(|&(by, way)| {
                let ns = self.call(by, way, size);
                ns.map_or_else(|| "-".to_owned(), |ns| significant(ns / 1e3))
            });
            table.row(std::iter::once(bytes(size)).chain(cells));
        }
        let ratio = |by: rpc::By, way: Way| {
            let tcp = self.call(by, Way::Tcp, 0)?;
            Some(self.call(by, way, 0)? / tcp)
        };
        let mut ratios = vec!["no argument, of TCP's time".to_owned()];
        ratios.extend(
            measured
                .iter()
                .map(|&(by, way)| ratio(by, way).map_or_else(|| "-".to_owned(), significant)),
        );
        table.row(ratios);
        let curves = measured.iter().map(|&(by, way)| Curve {
            name: rpc::name(by, way),
            points: CALL_BYTES
                .into_iter()
                .filter_map(|size| Some((size as f64, self.call(by, way, size)? / 1e3)))
                .collect(),
        });
        let plot = Curves {
            x: ("bytes of the argument".to_owned(), Scale::Linear),
            y: ("µs there and back".to_owned(), Scale::Logarithmic),
            curves: curves.collect(),
        };
        let pair = |way| self.call(rpc::By::Rpcgen, way, 0);
        Some(Section {
            title: "Figure 10: calls of a remote procedure".to_owned(),
            plots: vec![Plot::Curves(plot)],
            table: Some(table),
            words: vec![
                under::under_calls(pair(Way::Tcp), pair(Way::Ring)),
                words::OWN_MESSAGES.to_owned(),
            ],
        })
    }
}
