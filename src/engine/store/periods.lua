-- Of a time in s since 1970: the starts of its minute, day and month (UTC), and their ends.
local function PERIODS(second)
    local function day_of_month(days) -- days since 1970; the first is 0
        local of_era = (days + 719468) % 146097
        local year = math.floor((of_era - math.floor(of_era / 1460) + math.floor(of_era / 36524) -
                                 math.floor(of_era / 146096)) / 365)
        local of_year = of_era - (365 * year + math.floor(year / 4) - math.floor(year / 100))
        local month = math.floor((5 * of_year + 2) / 153)
        return of_year - math.floor((153 * month + 2) / 5)
    end
    local minute, days = second - second % 60, math.floor(second / 86400)
    local first = days - day_of_month(days)
    local later = first + 31 -- in the next month, whatever month this is
    return {minute, days * 86400, first * 86400},
           {minute + 60, (days + 1) * 86400, (later - day_of_month(later)) * 86400}
end
