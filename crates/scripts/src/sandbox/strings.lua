-- Strings ----------------------------------------------------------------------------------------

local search, find_plain, replace = native.search, native.find_plain, native.replace

-- The place that `init` names in a string, counted from 0.
local function beginning(text, init, name)
    if init == nil then return 0 end
    init = check_whole(init, 3, name)
    if init < 0 then init = #text + init + 1 end
    if init < 1 then init = 1 end
    if init > #text + 1 then init = #text + 1 end
    return init - 1
end

local function captures(found, text)
    if found.n == 0 then return sub(text, found.from, found.to) end
    return unpack(found, 1, found.n)
end

local function anchor(pattern)
    if byte(pattern, 1) == 94 then return true, sub(pattern, 2) end
    return false, pattern
end

local SPECIAL = '[%^%$%*%+%?%.%(%[%%%-]'

string.find = function(text, pattern, init, plain)
    text, pattern = check_string(text, 1, 'find'), check_string(pattern, 2, 'find')
    local from = beginning(text, init, 'find')
    if plain or not finish(search(pattern, SPECIAL, 0, false)) then
        local at = find_plain(text, pattern, from)
        if not at then return nil end
        return at, at + #pattern - 1
    end
    local anchored, rest = anchor(pattern)
    local found = finish(search(text, rest, from, anchored))
    if not found then return nil end
    if found.n == 0 then return found.from, found.to end
    return found.from, found.to, unpack(found, 1, found.n)
end

string.match = function(text, pattern, init)
    text, pattern = check_string(text, 1, 'match'), check_string(pattern, 2, 'match')
    local anchored, rest = anchor(pattern)
    local found = finish(search(text, rest, beginning(text, init, 'match'), anchored))
    if not found then return nil end
    return captures(found, text)
end

string.gmatch = function(text, pattern)
    text, pattern = check_string(text, 1, 'gmatch'), check_string(pattern, 2, 'gmatch')
    local from = 0
    return function()
        if from > #text then return nil end
        local found = finish(search(text, pattern, from, false))
        if not found then
            from = #text + 1
            return nil
        end
        from = found.to
        if found.to < found.from then from = from + 1 end
        return captures(found, text)
    end
end
string.gfind = string.gmatch

local function replacement(value, match)
    if not value then return match end
    if type(value) == 'string' then return value end
    if type(value) == 'number' then return tostring(value) end
    error('invalid replacement value (a ' .. type(value) .. ')', 3)
end

local function replace_each(text, pattern, by, most)
    local anchored, rest = anchor(pattern)
    local pieces, count, from, done = {}, 0, 0, 0
    while done < most do
        local found = finish(search(text, rest, from, anchored))
        if not found then break end
        done = done + 1
        local match = sub(text, found.from, found.to)
        local value
        if type(by) == 'table' then
            value = by[(captures(found, text))]
        else
            value = by(captures(found, text))
        end
        pieces[count + 1] = sub(text, from + 1, found.from - 1)
        pieces[count + 2] = replacement(value, match)
        count = count + 2
        from = found.to
        if found.to < found.from then
            if from >= #text then break end
            pieces[count + 1] = sub(text, from + 1, from + 1)
            count = count + 1
            from = from + 1
        end
        if anchored then break end
    end
    pieces[count + 1] = sub(text, from + 1)
    return concat(pieces), done
end

string.gsub = function(text, pattern, by, most)
    text, pattern = check_string(text, 1, 'gsub'), check_string(pattern, 2, 'gsub')
    most = most and check_number(most, 4, 'gsub') or #text + 1
    local kind = type(by)
    if kind == 'string' or kind == 'number' then
        local found = finish(replace(text, pattern, tostring(by), most))
        return found[1], found[2]
    end
    if kind ~= 'table' and kind ~= 'function' then
        bad_argument(3, 'gsub', 'string/function/table expected')
    end
    local replaced, count = replace_each(text, pattern, by, most)
    return replaced, count
end

string.rep = function(text, count)
    return (finish(native.repeat_text(check_string(text, 1, 'rep'), check_number(count, 2, 'rep'))))
end

-- What a function of Lua's own gives, of this name; or its error, where the script has called.
local function passed(name, fine, ...)
    if fine then return ... end
    local why = ...
    if type(why) == 'string' then
        local found = finish(replace(why, "'%?'", "'" .. name .. "'", 1))
        why = found[1]
    end
    error(why, 3)
end

for _, name in next, {'lower', 'upper', 'reverse'} do
    local own = string[name]
    string[name] = function(text)
        text = check_string(text, 1, name)
        charge_bytes(#text)
        return own(text)
    end
end

-- What is shorter costs no more than the instructions that lead to it.
local SHORT = 256

string.sub = function(text, from, to)
    local part = sub(
        check_string(text, 1, 'sub'), check_number(from, 2, 'sub'),
        to and check_number(to, 3, 'sub') or -1)
    if #part > SHORT then charge_bytes(#part) end
    return part
end

local format = string.format
string.format = function(layout, ...)
    layout = check_string(layout, 1, 'format')
    local bytes = #layout
    for _, value in next, {...} do
        if type(value) == 'string' then bytes = bytes + #value end
    end
    if bytes > SHORT then charge_bytes(bytes) end
    return passed('format', pcall(format, layout, ...))
end

