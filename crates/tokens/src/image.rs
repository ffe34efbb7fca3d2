use tidegate_engine::Tokens;

/// How a model counts the tokens of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageRule {
    /// The image is scaled down to fit 2048 × 2048, then to a short side of 768, and covered with tiles of 512 × 512. It costs
    /// `base` plus `tile` per tile, and only `base` with low detail.
    Tiles { base: u32, tile: u32 },
    /// The image is scaled down until at most `limit` squares of `edge` pixels cover it. Each costs `percent` hundredths of a token.
    /// Detail is ignored: some of these models ignore it, and a count that is too high is safer than one that is too low.
    Patches { edge: u32, limit: u32, percent: u32 },
    /// Each square of `edge` pixels costs `cell`. An image of at most half an edge costs one `cell`.
    Grid { edge: u32, cell: u32 },
}

impl ImageRule {
    /// gpt-4o's rule, for models whose own is unknown.
    pub const DEFAULT: ImageRule = ImageRule::Tiles { base: 85, tile: 170 };

    /// The tokens of an image. `size` is `None` if it is unknown, for example for a link; then 1024 × 1024 is assumed.
    #[must_use]
    pub fn tokens(self, detail: Detail, size: Option<Pixels>) -> Tokens {
        let size = size.unwrap_or(Pixels::ASSUMED);
        match (self, detail) {
            (ImageRule::Tiles { base, .. }, Detail::Low) => Tokens(base.into()),
            (ImageRule::Tiles { base, tile }, Detail::High) => {
                Tokens(u64::from(base) + tiles(size) * u64::from(tile))
            }
            (ImageRule::Patches { edge, limit, percent }, _) => {
                Tokens((patches(size, edge, limit) * u64::from(percent)).div_ceil(100))
            }
            (ImageRule::Grid { edge, cell }, _) => Tokens(cells(size, edge) * u64::from(cell)),
        }
    }
}

/// The requested level of detail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    Low,
    /// Also `auto`, `original` and unknown values. What `auto` selects is not published, so the more expensive level is assumed.
    #[default]
    High,
}

impl Detail {
    /// Parses the request's `detail` field.
    #[must_use]
    pub fn from_field(detail: Option<&str>) -> Detail {
        match detail {
            Some("low") => Detail::Low,
            Some(_) | None => Detail::High,
        }
    }
}

/// The size of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pixels {
    pub width: u32,
    pub height: u32,
}

impl Pixels {
    /// The assumed size if it is unknown.
    pub const ASSUMED: Pixels = Pixels { width: 1_024, height: 1_024 };

    fn sides(self) -> (f64, f64) {
        (f64::from(self.width.max(1)), f64::from(self.height.max(1)))
    }
}

fn tiles(size: Pixels) -> u64 {
    let (width, height) = size.sides();
    let fit = (2_048.0 / width.max(height)).min(1.0);
    let (width, height) = (width * fit, height * fit);
    let shrink = (768.0 / width.min(height)).min(1.0);
    covering(width * shrink, 512.0) * covering(height * shrink, 512.0)
}

fn patches(size: Pixels, edge: u32, limit: u32) -> u64 {
    let (width, height) = size.sides();
    let (edge, limit) = (f64::from(edge), f64::from(limit));
    let plain = covering(width, edge) * covering(height, edge);
    if plain as f64 <= limit {
        return plain;
    }
    // Scale down to the area of `limit` patches, then a little more, so that one side is a whole number of patches.
    let shrink = (edge * edge * limit / (width * height)).sqrt();
    let (across, down) = (width * shrink / edge, height * shrink / edge);
    let whole = (across.floor().max(1.0) / across).min(down.floor().max(1.0) / down).min(1.0);
    let patches = covering(across * whole, 1.0) * covering(down * whole, 1.0);
    patches.min(limit as u64)
}

fn cells(size: Pixels, edge: u32) -> u64 {
    let (width, height) = size.sides();
    let edge = f64::from(edge);
    if width.max(height) <= edge / 2.0 { 1 } else { covering(width, edge) * covering(height, edge) }
}

/// Returns the number of steps that cover a length. Scaling can leave a whole number slightly too high, which must not add a step.
fn covering(length: f64, step: f64) -> u64 {
    ((length / step - 1e-9).ceil() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: ImageRule, detail: &str, size: (u32, u32), tokens: u64) {
        let size = Pixels { width: size.0, height: size.1 };
        assert_eq!(rule.tokens(Detail::from_field(Some(detail)), Some(size)), Tokens(tokens), "{size:?}");
    }

    #[test]
    fn tiles_match_the_published_examples() {
        check(ImageRule::DEFAULT, "high", (1_024, 1_024), 765);
        check(ImageRule::DEFAULT, "high", (2_048, 4_096), 1_105);
        check(ImageRule::DEFAULT, "low", (4_096, 8_192), 85);
        check(ImageRule::DEFAULT, "auto", (512, 512), 255);
        check(ImageRule::DEFAULT, "high", (513, 512), 425);
        check(ImageRule::Tiles { base: 2_833, tile: 5_667 }, "high", (1_024, 1_024), 25_501);
        check(ImageRule::Tiles { base: 70, tile: 140 }, "high", (1, 1), 210);
    }

    #[test]
    fn patches_match_the_published_examples() {
        let plain = ImageRule::Patches { edge: 32, limit: 1_536, percent: 100 };
        check(plain, "high", (1_024, 1_024), 1_024);
        check(plain, "high", (1_800, 2_400), 1_452);
        check(ImageRule::Patches { edge: 32, limit: 1_536, percent: 162 }, "low", (1_024, 1_024), 1_659);
        check(ImageRule::Patches { edge: 32, limit: 1_536, percent: 120 }, "high", (2_048, 768), 1_844);
        check(plain, "high", (u32::MAX, 1), 1_536);
        check(plain, "high", (0, 0), 1);
    }

    #[test]
    fn grids_count_their_cells() {
        let grid = ImageRule::Grid { edge: 768, cell: 258 };
        check(grid, "auto", (384, 384), 258);
        check(grid, "auto", (769, 768), 516);
        check(grid, "auto", (u32::MAX, u32::MAX), 258 * 5_592_406 * 5_592_406);
    }

    #[test]
    fn an_image_of_unknown_size_counts_as_1024_by_1024() {
        assert_eq!(ImageRule::DEFAULT.tokens(Detail::High, None), Tokens(765));
    }
}
