"""The console's themes: one dark, one light, one whose colours most colour-blind people tell apart.

The third uses the palette of Masataka Okabe and Kei Ito, "Color Universal Design" (2002, revised
2008): blue #0072B2, sky blue #56B4E9, bluish green #009E73, yellow #F0E442, orange #E69F00,
vermilion #D55E00, reddish purple #CC79A7. No theme tells anything by colour alone: shapes and
words say the same.
"""

from textual.theme import Theme

DARK = Theme(
    name="midwatch",
    primary="#7AA2D6",
    secondary="#5C7A99",
    accent="#8FD3C8",
    success="#7FC77A",
    warning="#E6B450",
    error="#F07A78",
    foreground="#DCE3EA",
    background="#10151B",
    surface="#161D25",
    panel="#1E2731",
    variables={"block-cursor-foreground": "#10151B", "footer-key-foreground": "#E6B450"},
)
LIGHT = Theme(
    name="midwatch-light",
    primary="#1F5F9E",
    secondary="#4A6378",
    accent="#0B6B63",
    success="#23691F",
    warning="#8A5A00",
    error="#B3261E",
    foreground="#1B222A",
    background="#FAFAF7",
    surface="#F1F1EC",
    panel="#E4E5DF",
    dark=False,
    variables={"block-cursor-foreground": "#FFFFFF", "footer-key-foreground": "#8A5A00"},
)
SAFE = Theme(
    name="midwatch-safe",
    primary="#56B4E9",
    secondary="#0072B2",
    accent="#F0E442",
    success="#56B4E9",
    warning="#E69F00",
    error="#D55E00",
    foreground="#F2F2F2",
    background="#000000",
    surface="#0C0C0C",
    panel="#1C1C1C",
    variables={"block-cursor-foreground": "#000000", "footer-key-foreground": "#F0E442"},
)
THEMES = (DARK, LIGHT, SAFE)
