//! Writing the file format, one line per transaction.

use std::io::{self, Write};

use super::{
    Atom, History, Name, Op, OrderLine, Root, RootPart, SeenId, Status, Transaction, TxnIndex,
    VersionId, root_operations, show_key,
};

impl History {
    /// Writes the history in the file format; reading it back gives the same history.
    ///
    /// # Errors
    /// Whatever `out` reports.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        self.write_meta(&mut out)?;
        if !self.start.is_empty() {
            write!(out, "{{\"t\":\"start\",\"ops\":")?;
            root_operations::write(self, &self.start, &mut out)?;
            writeln!(out, "}}")?;
        }
        let mut parts = self.parts.iter().peekable();
        for txn in self.indices() {
            let part = parts.next_if(|part| part.txn == txn);
            self.write_transaction(&mut out, txn, part)?;
        }
        for root in &self.roots {
            self.write_root(&mut out, root)?;
        }
        for order in &self.orders {
            self.write_order(&mut out, order)?;
        }
        out.flush()
    }

    fn write_meta(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{{\"t\":\"meta\",\"kind\":\"{}\"", self.kind.name())?;
        for (field, value) in self.meta.iter().flatten() {
            write!(out, ",{}:{value}", serde_json::Value::from(field.as_str()))?;
        }
        writeln!(out, "}}")
    }

    fn write_transaction(
        &self,
        out: &mut impl Write,
        txn: TxnIndex,
        part: Option<&RootPart>,
    ) -> io::Result<()> {
        let transaction = self.transaction(txn);
        let Transaction { name, session, begin, end, status, .. } = *transaction;
        write!(out, "{{\"t\":\"txn\",\"id\":{}", self.json_name(name))?;
        self.write_span(out, session, (begin, end), status)?;
        if let Some(read_only) = transaction.read_only {
            write!(out, ",\"ro\":{read_only}")?;
        }
        if transaction.timestamp != Atom::Unrecorded {
            write!(out, ",\"ts\":{}", transaction.timestamp.json(&self.texts))?;
        }
        if let Some(as_of) = transaction.as_of {
            write!(out, ",\"of\":{as_of}")?;
        }
        if let Some(RootPart { root, role, .. }) = part {
            write!(out, ",\"root\":{},\"as\":\"{}\"", self.json_name(*root), role.name())?;
        }
        write!(out, ",\"ops\":[")?;
        for (position, op) in self.ops_of(txn).iter().enumerate() {
            out.write_all(if position == 0 { b"" } else { b"," })?;
            self.write_op(out, op)?;
        }
        writeln!(out, "]}}")
    }

    fn write_root(&self, out: &mut impl Write, root: &Root) -> io::Result<()> {
        let Root { name, session, begin, end, status, operations } = root;
        write!(out, "{{\"t\":\"root\",\"id\":{}", self.json_name(*name))?;
        self.write_span(out, *session, (*begin, *end), *status)?;
        write!(out, ",\"ops\":")?;
        root_operations::write(self, operations, out)?;
        writeln!(out, "}}")
    }

    fn json_name(&self, name: Name) -> String {
        match name {
            Name::Numbered(node, sequence) => format!("\"n{node}-{sequence}\""),
            Name::Text(text) => Atom::Json(text).json(&self.texts).into_owned(),
        }
    }

    /// What transactions and roots have alike.
    fn write_span(
        &self,
        out: &mut impl Write,
        session: Atom,
        (begin, end): (u64, Option<u64>),
        status: Status,
    ) -> io::Result<()> {
        if session != Atom::Unrecorded {
            write!(out, ",\"s\":{}", session.json(&self.texts))?;
        }
        write!(out, ",\"b\":{begin}")?;
        match end {
            Some(end) => write!(out, ",\"e\":{end}")?,
            None => write!(out, ",\"e\":null")?,
        }
        write!(out, ",\"st\":\"{}\"", status.letter())
    }

    fn write_op(&self, out: &mut impl Write, op: &Op) -> io::Result<()> {
        match *op {
            Op::Read { key, seen, value } => {
                write!(out, "[\"r\",{},", self.json_key(key.0))?;
                self.write_seen(out, seen)?;
                self.write_value(out, value)
            }
            Op::Write { key, version, value } => {
                write!(out, "[\"w\",{},", self.json_key(key.0))?;
                self.write_installed(out, version)?;
                self.write_value(out, value)
            }
            Op::Delete { key, version } => {
                write!(out, "[\"d\",{},", self.json_key(key.0))?;
                self.write_installed(out, version)?;
                write!(out, "]")
            }
            Op::Scan { scan } => self.write_scan(out, scan),
            Op::Append { key, element } => {
                let element = self.elements[element as usize].json(&self.texts);
                write!(out, "[\"a\",{},{element}]", self.json_key(key.0))
            }
            Op::ReadList { key, start, length } => {
                write!(out, "[\"r\",{},[", self.json_key(key.0))?;
                for (position, element) in self.list_read(start, length).iter().enumerate() {
                    out.write_all(if position == 0 { b"" } else { b"," })?;
                    write!(out, "{}", self.elements[*element as usize].json(&self.texts))?;
                }
                write!(out, "]]")
            }
        }
    }

    fn write_scan(&self, out: &mut impl Write, scan: u32) -> io::Result<()> {
        let scan = &self.scans[scan as usize];
        write!(out, "[\"s\",{},", json_bytes(&scan.low))?;
        match &scan.high {
            Some(high) => write!(out, "{},[", json_bytes(high))?,
            None => write!(out, "null,[")?,
        }
        for (position, row) in self.rows[scan.rows.clone()].iter().enumerate() {
            out.write_all(if position == 0 { b"[" } else { b",[" })?;
            write!(out, "{},", self.json_key(row.key.0))?;
            self.write_seen(out, row.seen)?;
            self.write_value(out, row.value)?;
        }
        write!(out, "]]")
    }

    fn write_order(&self, out: &mut impl Write, order: &OrderLine) -> io::Result<()> {
        write!(out, "{{\"t\":\"order\",\"k\":{}", self.json_key(order.key.0))?;
        if order.node != Atom::Unrecorded {
            write!(out, ",\"node\":{}", order.node.json(&self.texts))?;
        }
        write!(out, ",\"vs\":[")?;
        for (position, version) in order.versions.iter().enumerate() {
            out.write_all(if position == 0 { b"" } else { b"," })?;
            self.write_version(out, *version)?;
        }
        writeln!(out, "]}}")
    }

    fn write_seen(&self, out: &mut impl Write, seen: SeenId) -> io::Result<()> {
        match seen {
            SeenId::Own => write!(out, "\"own\""),
            SeenId::Version(version) => self.write_version(out, version),
        }
    }

    fn write_installed(&self, out: &mut impl Write, version: Option<VersionId>) -> io::Result<()> {
        match version {
            Some(version) => self.write_version(out, version),
            None => write!(out, "null"),
        }
    }

    fn write_version(&self, out: &mut impl Write, version: VersionId) -> io::Result<()> {
        match version {
            VersionId::Number(number) => write!(out, "{number}"),
            VersionId::List(_) => write!(out, "{}", self.show_version(version)),
        }
    }

    /// The last element of an operation, left out if it was not recorded, and the bracket.
    fn write_value(&self, out: &mut impl Write, value: Atom) -> io::Result<()> {
        match value {
            Atom::Unrecorded => write!(out, "]"),
            value => write!(out, ",{}]", value.json(&self.texts)),
        }
    }

    fn json_key(&self, key: u32) -> String {
        json_bytes(self.keys.bytes(key))
    }
}

fn json_bytes(key: &[u8]) -> String {
    serde_json::Value::from(show_key(key)).to_string()
}
