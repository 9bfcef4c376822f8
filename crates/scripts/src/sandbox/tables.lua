-- Tables: functions of Lua's own that look at all of one ------------------------------------------

local function check_writable(own, name)
    check_table(own, 1, name)
    if behind[own] then error(READONLY, 3) end
end

local insert, remove, sort = table.insert, table.remove, table.sort

table.insert = function(own, ...)
    check_writable(own, 'insert')
    if select('#', ...) == 2 then
        -- What is behind the place moves.
        local at = check_number((...), 2, 'insert')
        charge(max(#own - at, 0))
    end
    return passed('insert', pcall(insert, own, ...))
end

table.remove = function(own, at)
    check_writable(own, 'remove')
    if at == nil then return remove(own) end
    at = check_number(at, 2, 'remove')
    charge(max(#own - at, 0))
    return remove(own, at)
end

table.concat = function(own, between, from, to)
    check_table(own, 1, 'concat')
    own = behind[own] or own
    from = from and check_number(from, 3, 'concat') or 1
    to = to and check_number(to, 4, 'concat') or #own
    charge(max(min(to, #own) - from, 0))
    local text = passed('concat', pcall(concat, own, between, from, to))
    if #text > SHORT then charge_bytes(#text) end
    return text
end

local function is_less(left, right) return left < right end

-- Comparisons by a function of Lua are counted, and others are not.
table.sort = function(own, less)
    check_writable(own, 'sort')
    if less ~= nil and type(less) ~= 'function' then
        bad_argument(2, 'sort', 'function expected, got ' .. type(less))
    end
    return sort(own, less or is_less)
end

for _, name in next, {'foreach', 'foreachi', 'maxn'} do
    local own_function = table[name]
    table[name] = function(own, ...)
        check_table(own, 1, name)
        charge(#own)
        return own_function(behind[own] or own, ...)
    end
end

