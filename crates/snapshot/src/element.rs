//! One object of a snapshot: a segment with its blocks, an event, an annotation.

use scan::{Cursor, Stop, Text, Value};

use crate::model::{ACTIONS, Action, Annotation, Block, BlockState, Event, Segment, Snapshot};
use crate::spelling::{integer, text};
use crate::stacks::StackId;

/// Sizes above 4 PiB are no sizes of memory. Sums of smaller ones saturate nowhere in practice.
const MOST_SIZE: i64 = 1 << 52;

/// Keys that are known and not needed.
const IGNORED: &[&[u8]] = &[
    b"requested_size",
    b"frames",
    b"compile_context",
    b"user_metadata",
    b"forward_frames",
    b"pool_id",
    b"category",
];

fn number(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Number(digits) => integer(digits),
        Value::String(text) => integer(text.raw),
        _ => None,
    }
}

fn address(value: Value<'_>) -> Option<u64> {
    let (Value::Number(digits) | Value::String(Text { raw: digits, .. })) = value else {
        return None;
    };
    std::str::from_utf8(digits).ok()?.parse().ok()
}

impl Snapshot {
    fn size(&mut self, value: Option<i64>) -> i64 {
        match value.filter(|size| (0..=MOST_SIZE).contains(size)) {
            Some(size) => size,
            None => {
                self.reading.unreadable_numbers += 1;
                0
            }
        }
    }

    fn unknown_key(&mut self, of: &str, key: Text<'_>) {
        if !IGNORED.contains(&key.raw) {
            let name = format!("{of}.{}", text(key));
            *self.reading.unknown_keys.entry(name).or_default() += 1;
        }
    }

    /// Reads a segment as far as it goes.
    #[inline(never)]
    pub(crate) fn read_segment(&mut self, bytes: &[u8]) {
        let first_block = self.blocks.len();
        let mut segment = Segment { segment_type: "unknown".to_owned(), ..Segment::default() };
        let mut has_size = false;
        let result = self.segment_members(&mut Cursor::whole(bytes), &mut segment, &mut has_size);
        self.reading.damaged_elements += u64::from(result.is_err());
        let blocks = self.blocks.len();
        segment.blocks = first_block..blocks;
        // Old files have no address per block: they touch each other.
        let mut next = segment.address;
        let mut sum = 0i64;
        for block in self.blocks.get_mut(first_block..).unwrap_or_default() {
            if block.address == NO_ADDRESS {
                block.address = next;
            }
            next = next.saturating_add(block.size.unsigned_abs());
            sum = sum.saturating_add(block.size);
        }
        if !has_size {
            self.reading.unreadable_numbers += 1;
            segment.total_size = sum;
        }
        self.segments.push(segment);
    }

    fn segment_members(
        &mut self,
        cursor: &mut Cursor<'_>,
        segment: &mut Segment,
        has_size: &mut bool,
    ) -> Result<(), Stop> {
        cursor.peek()?;
        cursor.enter();
        let mut first = true;
        while let Some(key) = cursor.next_key(first)? {
            first = false;
            if key.raw == b"blocks" {
                self.read_blocks(cursor)?;
                continue;
            }
            let value = cursor.value()?;
            match key.raw {
                b"device" => segment.device = self.size(number(value)),
                b"address" => segment.address = address(value).unwrap_or_default(),
                b"total_size" => {
                    segment.total_size = self.size(number(value));
                    *has_size = true;
                }
                b"allocated_size" => segment.allocated_size = self.size(number(value)),
                b"active_size" => segment.active_size = self.size(number(value)),
                b"stream" => segment.stream = number(value).unwrap_or_default(),
                b"is_expandable" => segment.is_expandable = value == Value::True,
                b"segment_type" => {
                    if let Value::String(name) = value {
                        segment.segment_type = text(name).into_owned();
                    }
                }
                b"segment_pool_id" => {
                    if let Value::Array(pool) = value {
                        segment.pool = pair(pool).unwrap_or_default();
                    }
                }
                _ => self.unknown_key("segment", key),
            }
        }
        Ok(())
    }

    fn read_blocks(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        if cursor.peek()? != b'[' {
            return cursor.skip_value();
        }
        cursor.enter();
        let mut first = true;
        while cursor.next(first, false)? {
            first = false;
            if cursor.peek()? != b'{' {
                self.reading.damaged_elements += 1;
                cursor.skip_value()?;
                continue;
            }
            cursor.enter();
            self.read_block(cursor)?;
        }
        Ok(())
    }

    fn read_block(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Stop> {
        let mut block = Block {
            address: NO_ADDRESS,
            size: 0,
            requested: -1,
            state: BlockState::Allocated,
            stack: 0,
        };
        let mut history = None;
        let mut first = true;
        while let Some(key) = cursor.next_key(first)? {
            first = false;
            if key.raw == b"frames" {
                block.stack = self.stacks.read(cursor)?;
                continue;
            }
            let value = cursor.value()?;
            match key.raw {
                b"address" => block.address = address(value).unwrap_or(NO_ADDRESS),
                b"size" => block.size = self.size(number(value)),
                b"requested_size" if value != Value::Null => {
                    block.requested = self.size(number(value));
                }
                b"state" => block.state = self.block_state(value),
                b"history" => {
                    self.reading.has_history = true;
                    if let Value::Array(list) = value {
                        history = Some(list);
                    }
                }
                _ => self.unknown_key("block", key),
            }
        }
        if let Some((size, stack)) = history.and_then(|list| self.history(list).ok().flatten()) {
            if block.requested < 0 {
                block.requested = size.unwrap_or(block.size);
            }
            if block.stack == 0 {
                block.stack = stack;
            }
        }
        if block.requested < 0 {
            block.requested = block.size;
        }
        self.blocks.push(block);
        Ok(())
    }

    /// Requested bytes and stack of the first entry of an old block.
    fn history(&mut self, list: &[u8]) -> Result<Option<(Option<i64>, StackId)>, Stop> {
        let mut cursor = Cursor::whole(list);
        cursor.peek()?;
        cursor.enter();
        if !cursor.next(true, false)? || cursor.peek()? != b'{' {
            return Ok(None);
        }
        cursor.enter();
        let (mut size, mut stack, mut first) = (None, 0, true);
        while let Some(key) = cursor.next_key(first)? {
            first = false;
            match key.raw {
                b"frames" => stack = self.stacks.read(&mut cursor)?,
                b"real_size" => {
                    let value = cursor.value()?;
                    size = Some(self.size(number(value)));
                }
                _ => cursor.skip_value()?,
            }
        }
        Ok(Some((size, stack)))
    }

    fn block_state(&mut self, value: Value<'_>) -> BlockState {
        let Value::String(name) = value else {
            self.reading.damaged_elements += 1;
            return BlockState::PendingFree;
        };
        match name.raw {
            b"active_allocated" => BlockState::Allocated,
            // The docstring of PyTorch has the second name, its code emits the first.
            b"active_pending_free" | b"active_awaiting_free" => BlockState::PendingFree,
            b"inactive" => BlockState::Inactive,
            _ => {
                let name = text(name).into_owned();
                *self.reading.unknown_states.entry(name).or_default() += 1;
                BlockState::PendingFree
            }
        }
    }

    /// Reads an event of a device. One that is cut is left out.
    #[inline(never)]
    pub(crate) fn read_event(&mut self, device: usize, bytes: &[u8]) {
        let mut device_free = None;
        let Some(trace) = self.traces.get(device) else { return };
        let left_out = self.reading.left_out.get(&device).copied().unwrap_or_default();
        let index = trace.len() as u64 + left_out.before + left_out.behind;
        let chosen = self.chosen.clone().unwrap_or(0..usize::MAX);
        let is_before = index < chosen.start as u64;
        let is_kept = !is_before && index < chosen.end as u64;
        match self.event_members(&mut Cursor::whole(bytes), &mut device_free, is_kept) {
            Ok(event) if is_kept => {
                let Some(trace) = self.traces.get_mut(device) else { return };
                if let Some(free) = device_free {
                    self.device_free.insert((device, trace.len()), free);
                }
                trace.push(event);
            }
            Ok(_) if is_before => self.reading.left_out.entry(device).or_default().before += 1,
            Ok(event) => {
                self.reading.left_out.entry(device).or_default().behind += 1;
                self.later.entry(device).or_default().take(event);
            }
            Err(_) => self.reading.damaged_elements += 1,
        }
    }

    fn event_members(
        &mut self,
        cursor: &mut Cursor<'_>,
        device_free: &mut Option<i64>,
        wants_stack: bool,
    ) -> Result<Event, Stop> {
        let mut event = Event {
            action: Action::Other(0),
            stack: 0,
            address: 0,
            size: 0,
            stream: 0,
            time_us: i64::MIN,
        };
        let (mut first, mut has_action) = (true, false);
        cursor.peek()?;
        cursor.enter();
        while let Some(key) = cursor.next_key(first)? {
            first = false;
            if key.raw == b"frames" {
                // Of an event that is left out, no stack takes memory.
                if wants_stack {
                    event.stack = self.stacks.read(cursor)?;
                } else {
                    cursor.skip_value()?;
                }
                continue;
            }
            let value = cursor.value()?;
            match key.raw {
                b"action" => {
                    event.action = self.action(value);
                    has_action = true;
                }
                b"addr" => event.address = address(value).unwrap_or_default(),
                b"size" => event.size = self.size(number(value)),
                b"stream" => event.stream = number(value).unwrap_or_default(),
                b"time_us" => event.time_us = number(value).unwrap_or(i64::MIN),
                b"device_free" => *device_free = number(value),
                _ => self.unknown_key("event", key),
            }
        }
        if !has_action {
            event.action = self.unknown_action("(none)");
        }
        Ok(event)
    }

    fn action(&mut self, value: Value<'_>) -> Action {
        let Value::String(name) = value else { return self.unknown_action("(none)") };
        let known = ACTIONS.iter().find(|(spelling, _)| spelling.as_bytes() == name.raw);
        match known {
            Some((_, action)) => *action,
            None => self.unknown_action(&text(name)),
        }
    }

    fn unknown_action(&mut self, name: &str) -> Action {
        let names = &mut self.reading.unknown_actions;
        let at = names.iter().position(|known| known == name).unwrap_or_else(|| {
            if names.len() < usize::from(u8::MAX) {
                names.push(name.to_owned());
            }
            names.len().saturating_sub(1)
        });
        Action::Other(u8::try_from(at).unwrap_or(u8::MAX))
    }

    /// Reads an annotation. One that is damaged is left out.
    #[inline(never)]
    pub(crate) fn read_annotation(&mut self, bytes: &[u8]) {
        let mut annotation =
            Annotation { is_end: false, name: String::new(), device: None, time_us: 0 };
        match self.annotation_members(&mut Cursor::whole(bytes), &mut annotation) {
            Ok(()) => self.annotations.push(annotation),
            Err(_) => self.reading.damaged_elements += 1,
        }
    }

    fn annotation_members(
        &mut self,
        cursor: &mut Cursor<'_>,
        annotation: &mut Annotation,
    ) -> Result<(), Stop> {
        cursor.peek()?;
        cursor.enter();
        let mut first = true;
        while let Some(key) = cursor.next_key(first)? {
            first = false;
            let value = cursor.value()?;
            match (key.raw, value) {
                (b"stage", Value::String(stage)) => annotation.is_end = stage.raw == b"END",
                (b"name", Value::String(name)) => annotation.name = text(name).into_owned(),
                (b"device", _) => annotation.device = number(value),
                (b"time_us", _) => annotation.time_us = number(value).unwrap_or_default(),
                _ => self.unknown_key("annotation", key),
            }
        }
        Ok(())
    }
}

/// The address of a block that has none in the file.
const NO_ADDRESS: u64 = u64::MAX;

/// Two numbers of an array.
fn pair(array: &[u8]) -> Option<(i64, i64)> {
    let mut cursor = Cursor::whole(array);
    cursor.peek().ok()?;
    cursor.enter();
    let mut numbers = [0; 2];
    for (at, place) in numbers.iter_mut().enumerate() {
        cursor.next(at == 0, false).ok().filter(|more| *more)?;
        *place = number(cursor.value().ok()?)?;
    }
    let [a, b] = numbers;
    Some((a, b))
}
