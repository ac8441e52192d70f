"""The endpoints of the lab on the admin plane."""

from __future__ import annotations

from typing import Final

from hashrange_lab.admin import costs, heat, lab, recording

ENDPOINTS: Final = (*costs.ENDPOINTS, *heat.ENDPOINTS, *lab.ENDPOINTS, *recording.ENDPOINTS)
