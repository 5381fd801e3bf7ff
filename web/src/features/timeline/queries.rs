//! The height of the timeline below a view, in thousandths of the height that both have together; and other files below the timeline.

pub mod clock;

/// Below this, the picture has no room for a track.
pub const LEAST: u16 = 200;
/// Above this, the view has no room for a row of a table.
pub const MOST: u16 = 800;
/// The height before a person changes it.
pub const DEFAULT: u16 = 450;
/// How much an arrow key changes it.
const STEP: u16 = 50;

/// The next height that is allowed.
#[must_use]
pub fn bounded(height: u16) -> u16 {
    height.clamp(LEAST, MOST)
}

/// The height after a key on the separator, as on a slider; `None` of other keys.
#[must_use]
pub fn after_key(key: &str, height: u16) -> Option<u16> {
    Some(bounded(match key {
        "ArrowUp" => height + STEP,
        "ArrowDown" => height.saturating_sub(STEP),
        "Home" => LEAST,
        "End" => MOST,
        _ => return None,
    }))
}

/// The height with which the timeline begins at `y`, where both together reach from `top` to `bottom`.
#[must_use]
pub fn from_y(y: f64, top: f64, bottom: f64) -> u16 {
    // (The cast saturates.)
    bounded(((bottom - y) / (bottom - top).max(1.0) * 1000.0) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_change_the_height_within_its_bounds() {
        assert_eq!(after_key("ArrowUp", DEFAULT), Some(500));
        assert_eq!(after_key("ArrowDown", DEFAULT), Some(400));
        assert_eq!(after_key("ArrowUp", MOST), Some(MOST));
        assert_eq!(after_key("ArrowDown", 10), Some(LEAST));
        assert_eq!(after_key("Home", DEFAULT), Some(LEAST));
        assert_eq!(after_key("End", DEFAULT), Some(MOST));
        assert_eq!(after_key("ArrowLeft", DEFAULT), None);
    }

    #[test]
    fn the_timeline_begins_where_the_pointer_is() {
        assert_eq!(from_y(500.0, 100.0, 900.0), 500);
        assert_eq!(from_y(2000.0, 100.0, 900.0), LEAST);
        assert_eq!(from_y(-50.0, 100.0, 900.0), MOST);
        assert_eq!(from_y(0.0, 0.0, 0.0), LEAST, "a page that is not laid out");
    }
}
