"""From the words of a citation to the place in a held text."""
from __future__ import annotations
import re
from regatta_tools.audit.passages import Target
def country_of(jurisdiction: str) -> str:
    return jurisdiction.partition("-")[0]
def target_of(locator: str, number: str, jurisdiction: str):
    if country_of(jurisdiction)=='VN':
        m=re.match(r'(Điều \w+)(?:, khoản (\w+)(?:-(\w+))?)?(?:, điểm (\w+)(?:-(\w+))?)?$',locator)
        if not m: return None, 'x'
        s,k,k2,d,d2=m.groups()
        return Target(s,tuple(x for x in (k,d) if x),k2 or d2 or ''),''
    m=re.match(r'(.*?)\s(?:§\s?)?(\d[\w.\-/]*?)((?:\([\w-]+\))*)(?:-\((\w+)\))?$',locator)
    if not m: return None,'x'
    return Target(m.group(2),tuple(re.findall(r'\(([\w-]+)\)',m.group(3))),m.group(4) or ''),''
